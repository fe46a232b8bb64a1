import { StoreUnavailableError } from "@sluice/core"
import { describe, expect, it } from "vitest"
import { failureOf, isCode } from "./failure.ts"

describe("the error of a client", () => {
  it("becomes a store error with the original error as its cause", () => {
    const cause = new Error("OOM command not allowed")
    const failure = failureOf(cause)
    expect(failure).toBeInstanceOf(StoreUnavailableError)
    expect([failure.message, failure.cause]).toEqual(["Redis failed: OOM command not allowed", cause])
    expect(failureOf("gone", "Redis at 10.0.0.1:6379").message).toBe("Redis at 10.0.0.1:6379 failed: gone")
    expect(failureOf(undefined).message).toBe("Redis failed: undefined")
  })

  it("is described by its code or name if it has no message", () => {
    const refused = Object.assign(new AggregateError([new Error("::1"), new Error("127.0.0.1")]), {
      code: "ECONNREFUSED",
    })
    expect(failureOf(refused).message).toBe("Redis failed: ECONNREFUSED")
    expect(failureOf(new TypeError()).message).toBe("Redis failed: TypeError")
  })

  it("has a Redis code at its start, or where scripts of older Redis versions put it", () => {
    const texts = [
      ["READONLY You can't write against a read only replica.", true],
      ["ERR Error running script: @user_script:8: -READONLY You can't write", true],
      ["READONLYNESS", false],
      ["NOTREADONLY", false],
      ["ERR value is not an integer", false],
    ] as const
    for (const [text, expected] of texts) expect(isCode(new Error(text), "READONLY"), text).toBe(expected)
  })

  it("has no Redis code if it is a store error or not an Error", () => {
    expect(isCode(failureOf(new Error("READONLY")), "READONLY")).toBe(false)
    expect(isCode(new StoreUnavailableError("READONLY"), "READONLY")).toBe(false)
    for (const thrown of ["READONLY", { message: "READONLY" }, undefined]) {
      expect(isCode(thrown, "READONLY")).toBe(false)
    }
  })
})
