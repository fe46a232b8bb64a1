import type { RequestListener } from "node:http"
import { StoreUnavailableError } from "@sluice/core"
import { redisKey } from "@sluice/redis"
import { auditTo, rulesInMemory, tokens } from "@sluice/service"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startHttpServer } from "../servers/http-server.ts"
import { post } from "../service/post.ts"
import { FORWARD } from "../service/questions.ts"
import { type Started, startService } from "../service/started.ts"
import { sluice } from "./in-process.ts"

const lines: string[] = []
let started: Started
beforeAll(async () => {
  const home = rulesInMemory()
  await home.registry.register("shop", [
    { name: "per-user", field: "user", limit: 3, window: "1 day", algorithm: "fixed-window" },
    { name: "all", field: "service", limit: 1_000, window: "1 day" },
    { name: "trial", field: "user", limit: 1, window: "1 day", allow: ["root"], shadow: true },
  ])
  const log = (_fields: object, message: string) => void lines.push(message)
  started = await startService(home, {
    keyOf: (counter) => redisKey(counter, "app:"),
    tokens: tokens({ shop: "the-token" }),
    audit: auditTo({ info: log, warn: log }),
  })
})
afterAll(async () => started.stop())

const run = (argv: readonly string[], env: Record<string, string> = {}) =>
  sluice(["clients", ...argv], { env: { SLUICE_URL: started.http, SLUICE_TOKEN: "the-token", ...env } })

async function decide(): Promise<boolean> {
  const { body } = await post(started, FORWARD, { service: "shop", request: '{"user":"ada"}' })
  return body.shouldForward === true
}

describe("sluice clients", () => {
  it("shows why a client is refused with one command, and unblocks the client with another command", async () => {
    for (let i = 0; i < 3; i++) await decide()
    expect(await decide()).toBe(false)
    const client = ["--service", "shop", "per-user", "ada"]
    const shown = await run(["show", ...client])
    expect(shown).toMatchObject({ code: 0, err: "" })
    expect(shown.out).toMatch(
      /^refused: the limit is used up, for \d+ s more\n0 of 3 left, all of them again in \d+ s\nkey: app:sl2:\{..\}[\w-]{16}ada\n$/,
    )
    expect(await run(["reset", ...client])).toEqual({
      code: 0,
      out: "reset under rule per-user of shop\n",
      err: "",
    })
    expect(await decide()).toBe(true)
    expect(await run(["block", ...client, "--for", "1 hour"])).toMatchObject({
      code: 0,
      out: "blocked under rule per-user of shop for at least 1 hour\n",
    })
    expect(await decide()).toBe(false)
    expect((await run(["show", ...client])).out).toMatch(
      /^refused: blocked by an operator, for 3600 s more\n/,
    )
    expect(JSON.parse((await run(["show", ...client, "--json"])).out)).toMatchObject({
      ...{ ok: true, service: "shop", rule: "per-user", refusal: "blocked", retryAfterMs: "3600000" },
    })
    expect((await run(["unblock", ...client])).out).toBe("unblocked under rule per-user of shop\n")
    expect(await decide()).toBe(true)
    expect((await run(["show", ...client])).out).toMatch(/^admitted\n1 of 3 left/)
    expect(lines).toEqual(["A client was reset.", "A client was blocked.", "A client was unblocked."])
  })

  it("shows the same counter and key as sluice rules match", async () => {
    const { out } = await run(["show", "--service", "shop", "per-user", "ada", "--json"])
    const rules =
      "service_id: shop\nrules: { name: per-user, field: user, limit: 3, window: 1d, algorithm: fixed-window }\n"
    const argv = ["rules", "match", "-", "--field", "user=ada", "--prefix", "app:", "--json"]
    const matched = JSON.parse((await sluice(argv, { stdin: rules })).out)
    const { partition, key } = matched.services[0].rules[0]
    expect(JSON.parse(out)).toMatchObject({ partition: "ada", key })
    expect(partition).toBe("ada")
    const all = JSON.parse((await run(["show", "--service", "shop", "all", "--json"])).out)
    expect(all).toMatchObject({ key: expect.stringMatching(/^app:sl2:\{..\}[\w-]{16}$/) })
    expect((await run(["show", "--service", "shop", "trial", "root", "--json"])).out).not.toContain("app:sl2")
  })

  it("explains what is wrong and what to do", async () => {
    const client = ["--service", "shop", "per-user", "ada"]
    expect(await run(["show", "per-user", "ada"])).toMatchObject({
      code: 2,
      err: "error: --service is missing: give the name of the service\n",
    })
    expect(await run(["block", ...client])).toMatchObject({ code: 2, err: expect.stringContaining("--for") })
    expect(await run(["show", "--service", "shop", "per-usr", "ada"])).toEqual({
      code: 1,
      out: "",
      err: 'error: Service "shop" has no rule "per-usr": its rules are "per-user", "all", "trial".\n',
    })
    const wrong = await run(["show", "--service", "shop", "per-user"])
    expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("client has 0 values") })
    expect(await run(["show", ...client], { SLUICE_TOKEN: "" })).toMatchObject({
      code: 1,
      err: expect.stringContaining("Set SLUICE_TOKEN to the token of this service."),
    })
    const nobody = await run(["show", ...client, "--url", "http://127.0.0.1:1"])
    expect(nobody).toMatchObject({ code: 3, err: expect.stringContaining("--url or SLUICE_URL") })
    expect(await run(["show", ...client, "--url", "limiter:8080"])).toMatchObject({ code: 2 })
    expect((await run(["show", ...client, "--json"], { SLUICE_TOKEN: "" })).out).toContain(
      "SLUICE_SERVICE_CALL",
    )
  })

  it("reports that a change applies to every client", async () => {
    const rule = ["--service", "shop", "all"]
    expect((await run(["block", ...rule, "--for", "1m"])).out).toBe(
      "blocked every client under rule all of shop for at least 1m\n",
    )
    expect((await run(["unblock", ...rule])).out).toBe("unblocked every client under rule all of shop\n")
  })

  it("never prints the token, but explains why the token is invalid", async () => {
    const client = ["--service", "shop", "per-user", "ada"]
    for (const token of ["s3cret\nother", "s3cret other", "s3cret\u201d"]) {
      const { code, out, err } = await run(["show", ...client], { SLUICE_TOKEN: token })
      expect([code, out, err]).toEqual([2, "", expect.stringContaining("SLUICE_TOKEN is not a valid token")])
      expect(err).not.toContain("s3cret")
    }
    // `$(cat file)` results in such a token if the file has Windows line endings.
    expect(await run(["show", ...client], { SLUICE_TOKEN: "the-token\r\n" })).toMatchObject({ code: 0 })
    const inUrl = await run(["show", ...client], { SLUICE_URL: started.http.replace("//", "//ops:s3cret@") })
    expect(inUrl).toMatchObject({ code: 2, err: expect.stringContaining("SLUICE_URL contains a user name") })
    expect(inUrl.err).not.toContain("s3cret")
  })

  it("reports that the URL is wrong if another server responds", async () => {
    const answers: RequestListener[] = [
      (_, response) => response.writeHead(404).end("<html>not here</html>"),
      (_, response) => response.end("null"),
      (_, response) => response.writeHead(302, { location: started.http }).end(),
    ]
    for (const answer of answers) {
      const { url, close } = await startHttpServer(answer)
      expect(await run(["show", "--service", "shop", "per-user", "ada", "--url", url])).toMatchObject({
        code: 3,
        err: expect.stringContaining("Set --url or SLUICE_URL to the service's HTTP address"),
      })
      await close()
    }
  })

  it("reports that a client is on the allow list, or that a rule is in shadow mode", async () => {
    const show = async (user: string) => (await run(["show", "--service", "shop", "trial", user])).out
    expect(await show("root")).toBe("not counted: the rule's allow list names the client\n")
    expect(await show("ada")).toMatch(/\na shadow rule: it never refuses the client\n/)
    expect((await run(["show", "--service", "shop", "per-user", "ada"])).out).not.toContain("shadow")
  })

  it("shows an unknown refusal reason of a newer service unchanged, and weeks in days", async () => {
    const shown = {
      limit: "5",
      remaining: "0",
      refusal: "frozen",
      retryAfterMs: "1500",
      resetAfterMs: String(25.5 * 86_400_000),
    }
    const { url, close } = await startHttpServer((_, response) => response.end(JSON.stringify(shown)))
    const { code, out } = await run(["show", "--service", "shop", "per-user", "ada", "--url", url])
    await close()
    expect([code, out]).toEqual([
      0,
      "refused: frozen, for 2 s more\n0 of 5 left, all of them again in 26 days\n",
    ])
  })

  it("calls a service whose URL has a path", async () => {
    const urls: (string | undefined)[] = []
    const { url, close } = await startHttpServer((asked, response) => {
      urls.push(asked.url)
      response.end("{}")
    })
    const client = ["--service", "shop", "per-user", "ada"]
    expect((await run(["reset", ...client, "--url", `${url}/limits/?old`])).code).toBe(0)
    expect(urls).toEqual(["/limits/sluice.v1.RateLimiter/ResetClient"])
    await close()
  })

  it("fails if the store did not respond", async () => {
    const failing = (): never => {
      throw new StoreUnavailableError("Gone.", { kind: "unreachable" } as never)
    }
    const home = rulesInMemory()
    await home.registry.register("shop", [
      { name: "per-user", field: "user", limit: 3, window: "1 day" },
      { name: "monthly", field: "user", limit: 3, per: "month" },
    ])
    const gone = await startService(home, {
      tokens: tokens({ shop: "the-token" }),
      shared: {
        store: { take: failing, read: failing, refund: failing, reset: failing, close() {} },
        storeTimeoutMs: 1_000,
      },
    })
    const client = ["--service", "shop", "per-user", "ada", "--url", gone.http]
    expect(await run(["show", ...client])).toMatchObject({
      code: 3,
      err: "error: the store of the decision service did not respond, so these are the counts of one instance; run the command again\n",
    })
    expect(JSON.parse((await run(["show", ...client, "--json"])).out)).toMatchObject({
      ok: false,
      degraded: true,
    })
    expect(await run(["unblock", ...client])).toMatchObject({
      code: 3,
      err: expect.stringContaining("You can call unblock again."),
    })
    expect(await run(["grant", ...client.with(2, "monthly"), "--units", "5"])).toMatchObject({
      code: 3,
      err: expect.stringContaining("Call peek before another grant"),
    })
    await gone.stop()
  })
})
