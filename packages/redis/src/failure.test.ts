import { StoreUnavailableError } from "@sluice/core"
import { describe, expect, it } from "vitest"
import { allApplied, failureOf, isCode, titleOf } from "./failure.ts"

describe("a client's error", () => {
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

  it("is recognized by a Redis code at its start or, from scripts in older Redis versions, later", () => {
    const texts = [
      ["READONLY You can't write against a read only replica.", true],
      ["ERR Error running script: @user_script:8: -READONLY You can't write", true],
      ["READONLYNESS", false],
      ["NOTREADONLY", false],
      ["ERR value is not an integer", false],
    ] as const
    for (const [text, expected] of texts) expect(isCode(new Error(text), "READONLY"), text).toBe(expected)
  })

  it("is not recognized by a Redis code if it is a store error or not an Error", () => {
    expect(isCode(failureOf(new Error("READONLY")), "READONLY")).toBe(false)
    expect(isCode(new StoreUnavailableError("READONLY"), "READONLY")).toBe(false)
    for (const thrown of ["READONLY", { message: "READONLY" }, undefined]) {
      expect(isCode(thrown, "READONLY")).toBe(false)
    }
  })
})

describe("the title of a server", () => {
  it.each([
    ["", "Redis"],
    ["10.0.0.1:6379", "Redis at 10.0.0.1:6379"],
    ["/run/redis.sock", "Redis at /run/redis.sock"],
    ["http://user:pass@word@10.0.0.1:6379", "Redis at …@10.0.0.1:6379"],
  ])("contains the server's name, but neither user nor password: %j", (name, title) => {
    expect(titleOf(name)).toBe(title)
  })
})

describe("allApplied()", () => {
  const failed = (outcome: "not-applied" | "unknown") =>
    new StoreUnavailableError(`The change is ${outcome}.`, { kind: "timeout", outcome })
  const [before, lost] = [failed("not-applied"), failed("unknown")]

  it("resolves if every change was applied, or if there are no changes", async () => {
    expect(await allApplied([Promise.resolve(), Promise.resolve()])).toBeUndefined()
    expect(await allApplied([])).toBeUndefined()
  })

  it.each([
    ["the error of a change that was not applied, if no change was applied", [before, before], before],
    ["the error of a change whose outcome is unknown, if there is one", [before, lost], lost],
    ["the error of a change whose outcome is unknown, even if others were applied", [undefined, lost], lost],
  ])("rejects with %s", async (_, outcomes, expected) => {
    const changes = outcomes.map((error) => (error === undefined ? Promise.resolve() : Promise.reject(error)))
    await expect(allApplied(changes)).rejects.toBe(expected)
  })

  it("rejects with an unknown outcome if only some changes were applied", async () => {
    const changes = [Promise.resolve(), Promise.reject(before)]
    await expect(allApplied(changes)).rejects.toMatchObject({
      ...{ message: before.message, kind: "timeout", outcome: "unknown", cause: before },
    })
  })
})
