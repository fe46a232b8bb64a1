import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./second-factor.ts"

const clock = manualClock()
let server: Served
let address = 0

beforeEach(async () => {
  clock.set(Date.UTC(2024, 0, 1))
  const app = await createApp((account, sent) => sent === `code of ${account}` || sent === "4242", {
    clock,
    trustedProxies: ["loopback"],
  })
  server = await serve(app)
})
afterEach(() => server.close())

/** Sends each request from another address. */
const post = (path: string, body: object, token = "token-of-ann") =>
  fetch(`${server.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "x-forwarded-for": `198.51.100.${++address % 250}`,
    },
    body: JSON.stringify(body),
  })

const RULES = [
  { path: "/second-factor", policy: "second-factor", limit: 5, wrong: { code: "no" }, denied: 403 },
  { path: "/cards", policy: "cards", limit: 3, wrong: { card: "1" }, denied: 402 },
] as const

describe.each(RULES)("$path", ({ path, policy, limit, wrong, denied }) => {
  it(`admits ${limit} attempts an hour per account, from any address`, async () => {
    for (let tries = 0; tries < limit; tries++) expect((await post(path, wrong)).status).toBe(denied)
    const refused = await post(path, wrong)
    expect(refused.status).toBe(429)
    expect(refused.headers.get("ratelimit-policy")).toContain(`"${policy}";q=${limit};w=3600`)
    expect(await refused.json()).toMatchObject({ "violated-policies": [policy] })

    expect((await post(path, wrong, "token-of-bob")).status).toBe(denied)

    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await post(path, wrong)).status).toBe(429)
    clock.advance(1000)
    expect((await post(path, wrong)).status).toBe(denied)
  })

  it.each([
    ["with a query", `${path}?again=1`],
    ["percent-encoded", `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`],
  ])("cannot be bypassed with the path %s", async (_how, spelling) => {
    for (let tries = 0; tries < limit; tries++) await post(path, wrong)
    expect((await post(spelling, wrong)).status).toBe(429)
  })
})

describe("correct answers", () => {
  it("are accepted", async () => {
    expect((await post("/second-factor", { code: "code of ann" })).status).toBe(200)
    expect((await post("/cards", { card: "4242" })).status).toBe(200)
  })

  it("count as attempts too", async () => {
    const seen: number[] = []
    for (let tries = 0; tries < 4; tries++) seen.push((await post("/cards", { card: "4242" })).status)
    expect(seen).toEqual([200, 200, 200, 429])
  })
})

it("the recipe for a second factor requires an account before counting", async () => {
  expect((await post("/cards", { card: "4242" }, "token-of-nobody")).status).toBe(401)
})

it("the recipe for a second factor counts codes and cards separately", async () => {
  for (let tries = 0; tries < 4; tries++) await post("/cards", { card: "1" })
  expect((await post("/second-factor", { code: "code of ann" })).status).toBe(200)
})
