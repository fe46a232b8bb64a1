import type { RouteOptions } from "fastify"
import { describe, expect, it } from "vitest"
import { routeLabel, ruleName } from "./route-name.ts"

const route = (method: string | string[], url: string, constraints?: object) =>
  ({ method, url, handler: () => undefined, ...(constraints && { constraints }) }) as RouteOptions

describe("a route's label", () => {
  it.each([
    ["GET /users/:id", route("GET", "/users/:id")],
    ["GET /", route("HEAD", "/")],
    ["GET /", route(["HEAD", "GET"], "/")],
    ["GET,POST /", route(["POST", "GET"], "/")],
    ["GET,POST /", route(["GET", "POST", "HEAD"], "/")],
    ["GET /", route("GET", "/", {})],
    ["GET / { host: /a/, version: '1.0.0' }", route("GET", "/", { version: "1.0.0", host: /a/ })],
  ])("is %s", (label, options) => {
    expect(routeLabel(options)).toBe(label)
  })
})

describe("a rule's name", () => {
  it.each(["GET /users/:id", " !#$[]^~", "x".repeat(64)])("is the text where it may be one: %s", (text) => {
    expect(ruleName(text)).toBe(text)
  })

  const long = "GET /".padEnd(80, "x")
  it.each([
    ["GET /sch?n~", "GET /schön"],
    ["GET /:id(^??d+$)~", 'GET /:id(^"\\d+$)'],
    [`${"GET /".padEnd(55, "x")}~`, long],
  ])("starts with what is left of it, %s, and tells it from others by a hash", (start, text) => {
    const name = ruleName(text)
    expect(name.slice(0, -8)).toBe(start)
    expect(name.slice(-8)).toMatch(/^[\w-]{8}$/)
    expect(name.length).toBeLessThanOrEqual(64)
    expect(ruleName(`${text}y`)).not.toBe(name)
    expect(ruleName(text)).toBe(name)
  })
})
