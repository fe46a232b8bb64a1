import type * as Core from "@sluice/core"
import {
  createLimiter,
  decideAll,
  decisionOn,
  InvalidOptionError,
  memoryStore,
  SluiceError,
  StoreUnavailableError,
} from "@sluice/core"
import { createGuard } from "@sluice/core/adapters"
import type * as Rules from "@sluice/rules"
import { expect, it, vi } from "vitest"
import manifest from "../packages/core/package.json" with { type: "json" }

vi.resetModules()
/** Imports another copy of this version, as in an app whose packages each install their own copy. */
const other: typeof Core = await import("@sluice/core")
const otherRules: typeof Rules = await import("@sluice/rules")
vi.doMock("../packages/core/package.json", () => ({ default: { version: "9.9.9" } }))
vi.resetModules()
const later: typeof Core = await import("@sluice/core")
const laterRules: typeof Rules = await import("@sluice/rules")
vi.doUnmock("../packages/core/package.json")

const QUIET = { warn() {}, error() {} }
const REQUEST = { remoteAddress: "192.0.2.1" }
const RULE = { field: "ip", limit: 1, window: "1 minute" } as const

it("the three copies that this test imports are different", () => {
  expect(new Set([createLimiter, other.createLimiter, later.createLimiter]).size).toBe(3)
})

it("a guard accepts another copy's limiter, and both copies recognize its decisions", async () => {
  const limiter = other.createLimiter(RULE)
  const guard = createGuard<object>({ limiter } as never)
  const requests = [{}, {}]
  const outcomes = await Promise.all(requests.map((request) => guard.check(REQUEST, request)))
  expect(outcomes.map((outcome) => outcome?.rejection?.status)).toEqual([undefined, 429])
  const [request] = requests as [object]
  const decision = limiter.decisionOn(request as never)
  expect([decisionOn(request), other.decisionOn(request)]).toEqual([decision, decision])
  expect(decision?.allowed).toBe(true)
  await limiter.refund(decision as never)
  expect((await limiter.peek(REQUEST)).remaining).toBe(1)
  await limiter.close()
})

it("a limiter accepts the rule book and the store of another copy", async () => {
  const book = otherRules.createRuleBook({ source: otherRules.staticRules([RULE]) })
  const store = other.memoryStore()
  const limiter = createLimiter({ service: "checkout", rules: book, store, onRulesMissing: "deny" })
  await book.ready()
  const decisions = [await limiter.decide(REQUEST), await limiter.decide(REQUEST)]
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false])
  await Promise.all([limiter.close(), book.close(), store.close()])
})

it("createLimiter rejects rules of another version, and names the accepted version", () => {
  const rules = laterRules.staticRules([RULE])
  const book = laterRules.createRuleBook({ source: rules })
  for (const given of [rules, book]) {
    expect(() => createLimiter({ service: "search", rules: given })).toThrow(
      `is not a set of rules of this version of @sluice/core; accepted: rules of version ${manifest.version}`,
    )
  }
  book.close()
})

it("another copy's rule book rejects a rule whose name is taken, until the other limiter is closed", async () => {
  const store = memoryStore()
  const first = createLimiter({ ...RULE, name: "taken", service: "twice", store })
  const book = otherRules.createRuleBook({
    source: { load: async () => ({ rules: [{ ...RULE, name: "taken" }], problems: [] }) },
    onRulesMissing: "allow",
    logger: QUIET,
  })
  const second = createLimiter({ service: "twice", store, rules: book, logger: QUIET })
  await expect(second.ready()).rejects.toThrow('another limiter already counts rule "taken"')
  expect(second.rules.isRejected).toBe(true)
  await first.close()
  await second.ready()
  expect((await second.decide(REQUEST)).policy).toBe("taken")
  await Promise.all([second.close(), book.close(), store.close()])
})

it("decideAll accepts limiters of several copies", async () => {
  const store = memoryStore()
  const limiters = [
    createLimiter({ ...RULE, service: "a", store }),
    other.createLimiter({ ...RULE, service: "b", store }),
  ]
  const decide = () => decideAll(limiters.map((limiter) => ({ limiter, request: REQUEST })))
  expect([(await decide()).allowed, (await decide()).allowed]).toEqual([true, false])
  for (const limiter of limiters) await limiter.close()
})

it("another copy's error is an instance of this copy's class and base class", () => {
  const error = new other.StoreUnavailableError("late", { kind: "timeout" })
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error).toBeInstanceOf(SluiceError)
  expect(error).not.toBeInstanceOf(InvalidOptionError)
  for (const value of [null, undefined, 5, {}, new Error("x"), Object.create(null)]) {
    expect(value instanceof (SluiceError as never)).toBe(false)
  }
})

it("createGuard rejects a limiter of another version, and names the accepted version", () => {
  const problem = `limiter: is a limiter of another version of @sluice/core; accepted: a limiter of version ${manifest.version}`
  const limiter = later.createLimiter(RULE)
  expect(() => createGuard({ limiter } as never)).toThrow(problem)
  expect(new later.ClosedError("closed")).not.toBeInstanceOf(SluiceError)
})
