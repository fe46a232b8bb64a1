import { describe, expect, it } from "vitest"
import { ServerFacts } from "./server-facts.ts"

const REQUEST = { method: "GET", originalUrl: "/a?q=1", headers: { x: "1" }, query: { q: "1" }, body: {} }

describe("ServerFacts", () => {
  it("reads the framework's request, and the connection of Node's own request", () => {
    const socket = { remoteAddress: "192.0.2.1" }
    const facts = new ServerFacts({ ...REQUEST, params: { id: "7" } }, { socket })
    expect([facts.method, facts.url, facts.headers]).toEqual(["GET", "/a?q=1", { x: "1" }])
    expect([facts.query, facts.params, facts.body]).toEqual([{ q: "1" }, { id: "7" }, {}])
    expect([facts.remoteAddress, facts.keepsAddress]).toEqual(["192.0.2.1", socket])
    expect(facts.hasBody).toBeUndefined()
  })

  it("has no address if the app is called without a server", () => {
    const facts = new ServerFacts(REQUEST, {})
    expect([facts.remoteAddress, facts.keepsAddress]).toEqual([undefined, undefined])
  })

  it.each([true, false])(
    "derives whether an HTTP/2 request has a body from its stream's endAfterHeaders: %s",
    (endAfterHeaders) => {
      expect(new ServerFacts(REQUEST, { stream: { endAfterHeaders } }).hasBody).toBe(!endAfterHeaders)
    },
  )
})
