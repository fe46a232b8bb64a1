import { describe, expect, it } from "vitest"
import type { Decision } from "../decision/decision.ts"
import { RefusalError, readRefusalOption } from "./refusal-error.ts"

const decision = { allowed: false, policy: "all" } as Decision

describe("RefusalError", () => {
  it.each([
    { status: 429, isExposed: true },
    { status: 499, isExposed: true },
    { status: 500, isExposed: false },
    { status: 503, isExposed: false },
  ])("has `expose` set to $isExposed for the status $status, as Koa expects", ({ status, isExposed }) => {
    const error = new RefusalError(decision, { status, headers: [], body: "" })
    expect([error.expose, error.status, error.statusCode]).toEqual([isExposed, status, status])
  })

  it("contains all headers of the response except those that describe its body", () => {
    const headers = ["Retry-After", "Content-Type", "content-length", "X-Content-Type", "Content-Type-Note"]
    const error = new RefusalError(decision, {
      status: 429,
      headers: headers.map((name) => [name, "1"]),
      body: "",
    })
    expect(error.headerLines.map(([name]) => name)).toEqual([
      "Retry-After",
      "X-Content-Type",
      "Content-Type-Note",
    ])
  })
})

describe("the option throwOnRefusal", () => {
  it("is false by default, and the other options are passed on unchanged", () => {
    const options = { limit: 5 }
    expect(readRefusalOption(options).options).toBe(options)
    expect([readRefusalOption(options).throws, readRefusalOption(null as never).throws]).toEqual([
      false,
      false,
    ])
    expect(readRefusalOption({ throwOnRefusal: undefined, limit: 5 } as never)).toEqual({
      throws: false,
      options,
    })
  })

  it("is not passed on with the other options", () => {
    expect(readRefusalOption({ throwOnRefusal: true, limit: 5 })).toEqual({
      throws: true,
      options: { limit: 5 },
    })
  })
})
