import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { RuleUsage } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { type DecisionRecorder, jsonLinesSink } from "@sluice/recording"
import { expect, it, onTestFinished } from "vitest"
import { serve } from "../demo/serve.ts"
import { type Account, createApp, invoiceOf } from "./billing.ts"

const SLUICE = fileURLToPath(new URL("../../node_modules/@sluice/cli/bin/sluice.js", import.meta.url))
/** The 15th begins in Berlin at 23:00 UTC of the day before. */
const JANUARY = Date.UTC(2024, 0, 14, 23)
const FEBRUARY = Date.UTC(2024, 1, 14, 23)
const MARCH = Date.UTC(2024, 2, 14, 23)

async function open() {
  const clock = manualClock(JANUARY + 3_600_000)
  const folder = await mkdtemp(join(tmpdir(), "sluice-billing-"))
  const path = join(folder, "decisions.jsonl")
  const accounts = new Map<string, Account>()
  const accountOf = (req: { get(name: string): string | undefined }) =>
    accounts.get(req.get("x-account") ?? "") as Account
  const app = createApp(accountOf, jsonLinesSink(path), { clock, service: "pages" })
  const recorder: DecisionRecorder = app.locals.recorder
  const server = await serve(app)
  onTestFinished(async () => {
    await server.close()
    await rm(folder, { recursive: true })
  })
  const send = (id: string, method: string, target: string) =>
    fetch(server.url + target, { method, headers: { "x-account": id } })
  return {
    ...{ clock, accounts, recorder, path },
    signUp: (id: string, plan: Account["plan"], renewsOn: number) => accounts.set(id, { id, plan, renewsOn }),
    render: (id: string, pages: number) => send(id, "POST", `/render?pages=${pages}`),
    buyMore: (id: string) => send(id, "POST", "/more-pages"),
    usage: async (id: string) => {
      const usage = (await (await send(id, "GET", "/usage")).json()) as readonly RuleUsage[]
      return usage[0]
    },
  }
}

it("a customer's month goes from the sign-up to an invoice", async () => {
  const { clock, accounts, recorder, path, signUp, render, buyMore, usage } = await open()
  signUp("ada", "starter", 15)
  signUp("bob", "starter", 15)
  const unused = {
    policy: "monthly",
    partition: "ada",
    startMs: JANUARY,
    endMs: FEBRUARY,
    used: 0,
    granted: 0,
  }
  expect(await usage("ada")).toMatchObject({ ...unused, limit: 1_000, remaining: 1_000 })

  // The plan contains 1,000 pages, and 50 more are admitted and sold.
  for (const id of ["ada", "bob"]) {
    for (let day = 0; day < 10; day++) expect((await render(id, 100)).status).toBe(202)
    expect((await render(id, 40)).status).toBe(202)
  }
  clock.advance(3 * 86_400_000)
  const refused = await render("ada", 100)
  expect(refused.status).toBe(429)
  const seconds = Number(refused.headers.get("retry-after"))
  expect(seconds).toBe((FEBRUARY - clock.now()) / 1_000)

  expect((await buyMore("ada")).status).toBe(204)
  expect((await render("ada", 900)).status).toBe(202)
  expect(await usage("ada")).toMatchObject({ limit: 6_000, granted: 5_000, used: 1_940, remaining: 4_060 })

  accounts.set("ada", { id: "ada", plan: "scale", renewsOn: 15 })
  expect(await usage("ada")).toMatchObject({ limit: 15_000, granted: 5_000, used: 1_940, remaining: 13_060 })
  expect((await render("ada", 9_000)).status).toBe(202)
  const atTheEnd = await usage("ada")
  expect(atTheEnd).toMatchObject({ used: 10_940, granted: 5_000, endMs: FEBRUARY })

  // Bob waits as long as his response said, although nobody else needs to.
  const wait = Number((await render("bob", 100)).headers.get("retry-after"))
  clock.advance((wait - 1) * 1_000)
  expect((await render("bob", 100)).status).toBe(429)
  clock.advance(1_000)
  expect((await render("bob", 100)).status).toBe(202)
  const renewed = { startMs: FEBRUARY, endMs: MARCH, limit: 10_000, granted: 0, used: 0 }
  expect(await usage("ada")).toMatchObject(renewed)

  await recorder.close()
  const page = await readFile(new URL("../../../docs/protect/plans.md", import.meta.url), "utf8")
  const [, command = ""] = /^sluice (.*)$/m.exec(page) ?? []
  const argv = command.split(" ").map((word) => (word === "decisions.jsonl" ? path : word))
  const { stdout } = await promisify(execFile)(process.execPath, [SLUICE, ...argv])
  const [ada, bob, ...others] = JSON.parse(stdout).usage
  expect(others).toEqual([])
  const period = { from: "2024-01-14T23:00:00Z", to: "2024-02-14T23:00:00Z" }
  expect(ada).toMatchObject({ client: "ada", ...period, used: 10_940, granted: 5_000 })
  expect(invoiceOf("scale", ada.used, ada.granted)).toEqual({
    lines: [
      { text: "plan scale", cents: 9_900 },
      { text: "5000 more pages", cents: 10_000 },
      { text: "0 pages above the limit", cents: 0 },
    ],
    cents: 19_900,
  })
  expect(bob).toMatchObject({ client: "bob", ...period, used: 1_040 })
  expect(invoiceOf("starter", bob.used, bob.granted)).toEqual({
    lines: [
      { text: "plan starter", cents: 2_900 },
      { text: "0 more pages", cents: 0 },
      { text: "40 pages above the limit", cents: 80 },
    ],
    cents: 2_980,
  })
})
