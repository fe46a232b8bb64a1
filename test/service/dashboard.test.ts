import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { text } from "node:stream/consumers"
import { afterEach, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { type RunningHere, startHere } from "./in-process.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { rulesFile } from "./rules-file.ts"

const RULES = `
service_id: shop
rules: { name: per-user, field: user, limit: 1, window: 1 day }
---
service_id: maps
rules: { name: tiles, field: user, limit: 1, window: 1 day }
`
const TOKENS = '{"shop":"token-of-the-shop","maps":"token-of-the-maps"}'
const OWN = { "content-type": "application/json", "x-sluice-dashboard": "1" }

let running: RunningHere | undefined
afterEach(async () => void (await running?.stop()))

async function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningHere> {
  running = await startHere(["--rules", rulesFile(RULES), ...args], env)
  await running.said("The service is ready.")
  for (let i = 0; i < 3; i++) await post(running, FORWARD, { service: "shop", request: { user: "ada" } })
  return running
}

/** Sends a request as a browser would. */
async function visit(
  { operations }: RunningHere,
  path: string,
  {
    method = "GET",
    headers = {},
    body,
  }: { method?: string; headers?: Record<string, string>; body?: object } = {},
): Promise<IncomingMessage> {
  const sent = request(operations + path, { method, headers: { connection: "keep-alive", ...headers } })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, "response")) as [IncomingMessage]
  return response
}

async function statusOf(...call: Parameters<typeof visit>): Promise<number | undefined> {
  const response = await visit(...call)
  response.resume()
  return response.statusCode
}

/** Resets the client of per-user that the page shows. Returns the status and the response. */
async function reset(program: RunningHere, token?: string): Promise<readonly [number | undefined, string]> {
  const search = { method: "POST", headers: OWN, body: { key: "ada" } }
  const { clients } = JSON.parse(await text(await visit(program, "/limits/find", search)))
  const { service, rule, id } = clients[0]
  const headers = { ...OWN, ...(token !== undefined && { "x-sluice-token": token }) }
  const body = { action: "reset", service, rule, id, text: "ada" }
  const response = await visit(program, "/limits/change", { method: "POST", headers, body })
  return [response.statusCode, await text(response)]
}

async function isForwarded(program: RunningHere): Promise<unknown> {
  const { body } = await post(program, FORWARD, { service: "shop", request: { user: "ada" } })
  return body.shouldForward ?? false
}

describe("the dashboard of the decision service", () => {
  it("is off by default", async () => {
    const program = await start([])
    expect(await statusOf(program, "/limits/")).toBe(404)
    expect(await text(await visit(program, "/"))).not.toContain("/limits/")
  })

  it("is one path of the operations port, which shows all services to a browser on this machine", async () => {
    const program = await start(["--dashboard", "local"], { SLUICE_TOKENS: TOKENS })
    const redirect = await visit(program, "/limits")
    expect([redirect.statusCode, redirect.headers.location]).toEqual([302, "./limits/"])
    expect(await text(await visit(program, "/limits/"))).toContain("<!doctype html>")
    const overview = JSON.parse(await text(await visit(program, "/limits/overview.json")))
    expect(overview.services).toMatchObject([{ service: "shop", rules: [{ rule: "per-user" }] }])
    expect(overview.services[0].rules[0].refused).toMatchObject([
      { key: expect.stringMatching(/^hash:\w{8}$/), refusals: 2 },
    ])
    for (const path of ["/livez", "/readyz", "/metrics"]) expect(await statusOf(program, path)).toBe(200)
    expect(JSON.parse(await text(await visit(program, "/limitsx")))).toMatchObject({
      paths: ["/livez", "/readyz", "/metrics", "/limits/"],
    })
    expect(await statusOf(program, "/livez", { method: "POST" })).toBe(405)
    expect(await statusOf(program, "/limits/", { method: "DELETE" })).toBe(405)
  })

  it.each([
    ["local", 403],
    ["open", 200],
  ])("with the value %s responds to other machines with %d", async (who, status) => {
    const program = await start(["--dashboard", who])
    for (const headers of [{ host: "sluice.example" }, { "x-forwarded-for": "192.0.2.7" }])
      expect(await statusOf(program, "/limits/", { headers })).toBe(status)
    expect(await statusOf(program, "/limits/")).toBe(200)
  })

  it("shows the same hash of a client in all instances, whatever the order of their tokens", async () => {
    const hashWith = async (env: Readonly<Record<string, string>>): Promise<string> => {
      const program = await start(["--dashboard", "local"], env)
      const { services } = JSON.parse(await text(await visit(program, "/limits/overview.json")))
      await program.stop()
      running = undefined
      return services[0].rules[0].refused[0].key
    }
    const [shop, maps] = ["token-of-the-shop", "token-of-the-maps"]
    const hash = await hashWith({ SLUICE_TOKENS: JSON.stringify({ shop, maps }) })
    expect(await hashWith({ SLUICE_TOKENS: JSON.stringify({ maps, shop }) })).toBe(hash)
    expect(await hashWith({ SLUICE_TOKENS: JSON.stringify({ shop }) })).not.toBe(hash)
  })

  it("changes a client only with the token of its service, and logs an audit line as for ResetClient", async () => {
    const program = await start(["--dashboard", "open"], { SLUICE_TOKENS: TOKENS })
    expect(await reset(program)).toEqual([403, expect.stringContaining("Enter the token")])
    expect((await reset(program, "token-of-the-maps"))[0]).toBe(403)
    expect(await isForwarded(program)).toBe(false)
    expect((await reset(program, "token-of-the-shop"))[0]).toBe(200)
    expect(await isForwarded(program)).toBe(true)
    const headers = { authorization: "Bearer token-of-the-shop" }
    const named = { service: "shop", rule: "per-user", client: ["ada"] }
    await post(program, "/sluice.v1.RateLimiter/ResetClient", named, headers)
    const [line, ofCall, ...more] = program.lines().filter(({ msg }) => msg === "A client was reset.")
    expect(line).toEqual({ ...ofCall, time: line?.time, peer: expect.stringContaining("127.0.0.1") })
    expect([more, JSON.stringify(line)]).toEqual([[], expect.not.stringContaining("ada")])
  })

  it("without tokens lets only a browser on this machine change clients", async () => {
    const program = await start(["--dashboard", "open"])
    expect((await reset(program))[0]).toBe(200)
    const search = { method: "POST", headers: { ...OWN, host: "sluice.example" }, body: { key: "ada" } }
    const found = JSON.parse(await text(await visit(program, "/limits/find", search)))
    expect(found.operator).toBe("no")
  })

  it("changes nothing if registration is closed, because there are no tokens", async () => {
    const program = await start(["--dashboard", "local", "--grpc", "0.0.0.0:0", "--drain-pause", "0"])
    expect((await reset(program))[0]).toBe(403)
  })

  it("ends open pages when the service stops", async () => {
    const program = await start(["--dashboard", "local"])
    const events = await visit(program, "/limits/events")
    let received = ""
    events.setEncoding("utf8").on("data", (chunk: string) => {
      received += chunk
    })
    await until("the page has received data", () => received.includes("per-user"))
    const ended = once(events, "end")
    running = undefined
    expect(await program.stop()).toBe(true)
    await ended
  })
})
