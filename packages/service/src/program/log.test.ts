import { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "@sluice/core"
import { describe, expect, it } from "vitest"
import { createLog } from "./log.ts"
import { oncePerOutage } from "./outage-log.ts"

function written(): { readonly lines: string[]; write(line: string): void } {
  const lines: string[] = []
  return { lines, write: (line) => void lines.push(line) }
}

describe("the log", () => {
  it("contains an error's name, code, message, stack and causes, and none of its other properties", () => {
    const to = written()
    // A property that ioredis attaches to an error.
    const cause = Object.assign(new Error("WRONGPASS"), { command: { name: "auth", args: ["hidden"] } })
    const err = Object.assign(new Error("gone", { cause }), { code: "GONE", key: "hidden" })
    createLog("info", to).error({ err }, "failed")
    const [line = ""] = to.lines
    expect(line).not.toContain("hidden")
    expect(JSON.parse(line)).toMatchObject({
      level: "error",
      msg: "failed",
      err: { type: "Error", code: "GONE", message: "gone", cause: { message: "WRONGPASS" } },
    })
  })

  it.each([
    [
      "an error about wrong rules",
      new InvalidRuleError([{ path: "rules[0].limit", message: "0 is not a limit" }]),
    ],
    ["an error of a rule source", new RuleSourceError("no table", { cause: new Error("refused") })],
    ["an error of a store", new StoreUnavailableError("no Redis", { cause: new Error("refused") })],
  ])("omits the stack of %s and of its cause, because the message says what to fix", (_what, err) => {
    const to = written()
    createLog("info", to).error({ err }, "failed")
    const { type, code, message, cause } = JSON.parse(to.lines[0] as string).err
    expect({ type, code, message }).toEqual({ type: err.name, code: err.code, message: err.message })
    expect(cause?.message).toBe((err.cause as Error | undefined)?.message)
    expect(to.lines[0]).not.toMatch(/"stack"|log\.test/)
  })

  it("contains the stack of an unexpected error and of its cause", () => {
    const to = written()
    createLog("info", to).error(
      { err: new Error("fault", { cause: new TypeError("no function") }) },
      "failed",
    )
    const { stack, cause } = JSON.parse(to.lines[0] as string).err
    expect([stack, cause.stack]).toEqual([
      expect.stringContaining("log.test"),
      expect.stringContaining("log.test"),
    ])
  })

  it("explains why no node of the cluster could be used", () => {
    const to = written()
    const lastNodeError = Object.assign(new Error("cluster support disabled"), { command: "hidden" })
    const err = Object.assign(new Error("Failed to refresh slots cache."), { lastNodeError })
    createLog("info", to).warn({ err }, "no connection")
    expect(JSON.parse(to.lines[0] as string).err.cause.message).toBe("cluster support disabled")
    expect(to.lines[0]).not.toContain("hidden")
  })

  it("stops at circular causes and accepts a value that is not an error", () => {
    const to = written()
    const round = new Error("round")
    round.cause = round
    const log = createLog("info", to)
    log.error({ err: round }, "one")
    log.error({ err: "text" }, "two")
    expect(to.lines.map((line) => JSON.parse(line).err.message)).toEqual(["round", "text"])
  })

  it("writes nothing at the level silent", () => {
    const to = written()
    createLog("silent", to).fatal("nobody hears it")
    expect(to.lines).toEqual([])
  })
})

describe("limiters that share a store", () => {
  it("log each outage and each recovery once for all of them, and other messages every time", () => {
    const to = written()
    const logger = oncePerOutage(createLog("info", to))
    for (const _outage of [1, 2]) {
      for (const _limiter of [1, 2, 3]) logger.error({ code: "SLUICE_DEGRADED" }, "gone")
      logger.warn({ code: "SLUICE_INVALID_COST" }, "other")
      for (const _limiter of [1, 2, 3]) logger.warn({ code: "SLUICE_RECOVERED" }, "back")
      logger.warn({ code: "SLUICE_INVALID_COST" }, "other")
    }
    const said = to.lines.map((line) => JSON.parse(line).msg)
    expect(said).toEqual(["gone", "other", "back", "other", "gone", "other", "back", "other"])
  })

  it("log each cause of an outage and each problem of a server once", () => {
    const to = written()
    const logger = oncePerOutage(createLog("info", to))
    const causes = ["Redis is late.", "Redis is late. The store keeps trying.", "Redis failed: READONLY"]
    for (const _limiter of [1, 2]) {
      for (const cause of causes) logger.error({ code: "SLUICE_DEGRADED", err: new Error(cause) }, cause)
      for (const keys of [14, 15]) logger.warn({ code: "SLUICE_STORE_EVICTS" }, `a evicted ${keys} keys.`)
      logger.warn({ code: "SLUICE_STORE_EVICTS" }, "b evicted 2 keys.")
    }
    const said = to.lines.map((line) => JSON.parse(line).msg)
    expect(said).toEqual([causes[0], causes[2], "a evicted 14 keys.", "b evicted 2 keys."])
    const codes = to.lines.map((line) => JSON.parse(line).code)
    expect(codes.slice(0, 2)).toEqual(["SLUICE_DEGRADED", "SLUICE_DEGRADED_FURTHER"])
  })
})
