import { expectLimited, manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./second-factor.ts"

const clock = manualClock()
let server: Served
let address = 0
const PATH = "/second-factor"

beforeEach(async () => {
  clock.resetAll()
  const app = await createApp((account, sent) => sent === `code of ${account}`, {
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

const wrong = { code: "no" }

describe("the second-factor recipe", () => {
  it("admits five codes an hour for an account, from any address", async () => {
    const refused = await expectLimited(() => post(PATH, wrong), 5)
    expect(refused.headers.get("ratelimit-policy")).toContain('"codes";q=5;w=3600')
    expect(await refused.json()).toMatchObject({ "violated-policies": ["codes"] })

    expect((await post(PATH, wrong, "token-of-bob")).status).toBe(403)

    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await post(PATH, wrong)).status).toBe(429)
    clock.advance(1000)
    expect((await post(PATH, wrong)).status).toBe(403)
  })

  it.each([
    ["a query in the path", `${PATH}?again=1`],
    ["a percent-encoded path", "/%73econd-factor"],
  ])("cannot be bypassed with %s", async (_how, spelling) => {
    await expectLimited(() => post(PATH, wrong), 5)
    expect((await post(spelling, wrong)).status).toBe(429)
  })

  it("accepts correct codes, and counts them too", async () => {
    const seen: number[] = []
    for (let tries = 0; tries < 6; tries++) seen.push((await post(PATH, { code: "code of ann" })).status)
    expect(seen).toEqual([200, 200, 200, 200, 200, 429])
  })

  it("refuses requests without an account", async () => {
    expect((await post(PATH, { code: "code of ann" }, "token-of-nobody")).status).toBe(401)
  })
})
