import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import type { Block } from "./blocks.ts"
import { makeFolder, startApp } from "./programs.ts"
import { blocksTestedBy } from "./shown.ts"

const [rules, block] = blocksTestedBy("test/docs/plans.test.ts", "docs/protect/plans.md", 2) as [Block, Block]

/** An app that contains the page's block. A request names an account and its plan, only an account, or neither. */
const APP = `
import express from "express"

const app = express()
app.use((req, _res, next) => {
  const id = req.get("x-account")
  if (id !== undefined) req.user = { id, plan: req.get("x-plan") }
  next()
})
${block.text}
app.get("/", (_req, res) => void res.send("hello"))
app.listen(process.env.PORT)
`

interface Client {
  readonly account?: string
  readonly plan?: string
}

/** Starts the page's app. The returned functions send requests to the app, and replace its rules file. */
async function start() {
  const folder = makeFolder({ "app.js": APP, "plans.yaml": rules.text })
  const program = await startApp(folder)
  const get = (path: string, { account, plan }: Client): Promise<Response> =>
    fetch(program.url + path, {
      headers: {
        ...(account !== undefined && { "x-account": account }),
        ...(plan !== undefined && { "x-plan": plan }),
      },
    })
  /** Sends this many requests, and returns the number of admitted requests. */
  const admitted = async (count: number, client: Client): Promise<number> => {
    let admitted = 0
    for (let sent = 0; sent < count; sent++) {
      const { status } = await get("/", client)
      if (status === 200) admitted++
      else expect(status).toBe(429)
    }
    return admitted
  }
  const usage = async (client: Client): Promise<unknown> => (await get("/usage", client)).json()
  const change = (text: string): void => writeFileSync(join(folder, "plans.yaml"), text)
  return { program, admitted, usage, change }
}

describe("an app with plans in a file", () => {
  it("applies a limit to each plan and to a single customer, and the free plan's limit to others", async () => {
    const { admitted } = await start()
    expect(await admitted(9, { account: "ann", plan: "free" })).toBe(5)
    expect(await admitted(9, { account: "bob", plan: "pro" })).toBe(8)
    expect(await admitted(9, { account: "dan" })).toBe(5)
    expect(await admitted(9, { account: "cyd", plan: "pro" })).toBe(9)
    expect(await admitted(9, {})).toBe(5)
  })

  it("counts from 0 after a change of the plan, and shows the usage without taking units", async () => {
    const { admitted, usage } = await start()
    expect(await admitted(9, { account: "ann", plan: "free" })).toBe(5)
    const pro = { account: "ann", plan: "pro" }
    for (const _ of [1, 2]) expect(await usage(pro)).toEqual([{ policy: "pro", limit: 8, remaining: 8 }])
    expect(await admitted(9, pro)).toBe(8)
    expect(await usage(pro)).toEqual([{ policy: "pro", limit: 8, remaining: 0 }])
  })

  it("applies a changed limit to the counts so far, and keeps all rules when the file contains a mistake", async () => {
    const { program, admitted, usage, change } = await start()
    const ann = { account: "ann", plan: "free" }
    expect(await admitted(3, ann)).toBe(3)
    change(rules.text.replace("limit: 5", "limit: 50"))
    await until("the file has been read", async () =>
      JSON.stringify(await usage(ann)).includes('"limit":50,"remaining":47'),
    )
    change(rules.text.replace("limit: 5", "limit: 50").replace("limit: 8", "limit: -8"))
    await until("the mistake is logged", () => program.output().includes("SLUICE_RULES_REJECTED"))
    expect(program.output()).toContain("rules[1].limit")
    expect(await usage(ann)).toEqual([{ policy: "free", limit: 50, remaining: 47 }])
  })
})
