import ts from "typescript"
import { describe, expect, it } from "vitest"
import { exportedValuesOf, fileOf, membersOf, nodesOf } from "../declared.ts"
import { namesIn, namesWithCounterpart, notShown, type Row, readGuide, type ShownBy } from "../guide.ts"
import { longCounterparts } from "../lines-of-pairs.ts"
import { behaveAlike } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { METHODS } from "./methods.ts"
import { OPTIONS, redisOptions } from "./options.ts"

const pairs = { ...OPTIONS, ...METHODS, ...redisOptions(await emptyRedis()) }
const files = ["options.ts", "methods.ts"].map((name) => new URL(name, import.meta.url))
const guide = readGuide("rate-limiter-flexible.md")
const lists = readGuide("rate-limiter-flexible-names.md")
const [options, methods, yielded, classes] = ["Options", "Methods", "Members of the result", "Classes"].map(
  lists.rows,
) as [Row[], Row[], Row[], Row[]]

const types = fileOf("rate-limiter-flexible", "types.d.ts")
const exported = exportedValuesOf(types)
const optionTypes = nodesOf(types)
  .filter(ts.isInterfaceDeclaration)
  .map(({ name }) => name.text)
  .filter((name) => /Opt(ion)?s/.test(name))
const optionNames = membersOf(types, ...optionTypes)
const resultNames = membersOf(types, "RateLimiterRes")
const errorNames = membersOf(types, ...exported.filter((name) => name.endsWith("Error")))

const HERE = "test/docs/migrating/rate-limiter-flexible/differences.test.ts"
/** The counterparts that other tests cover. */
const SHOWN_BY: ShownBy = {
  execEvenly: ["test/contracts/adapter/holding.ts", "leaky-bucket"],
  execEvenlyMinDelayMs: ["test/contracts/adapter/holding.ts", "leaky-bucket"],
  inMemoryBlockOnConsumed: ["test/redis/deny-cache.test.ts", "denyCacheMs"],
  inMemoryBlockDuration: ["test/redis/deny-cache.test.ts", "denyCacheMs"],
  timeoutMs: ["test/docs/migrating/outages.test.ts", "while Redis is frozen"],
  maxQueueSize: ["packages/core/src/limiter/acquire.test.ts", "maxWaiting"],
  msBeforeNext: [HERE, "retryAfterMs"],
  remainingPoints: [HERE, "remaining"],
  consumedPoints: [HERE, "limit - remaining"],
  RateLimiterRes: [HERE, "retryAfterMs"],
  RateLimiterQueueError: ["packages/core/src/limiter/acquire.test.ts", "RateLimitExceededError"],
  RateLimiterRedisNonAtomic: ["test/redis/redis-store.contract.test.ts", "ioredis"],
  RateLimiterValkey: ["test/redis/redis-store.contract.test.ts", "ioredis"],
  RateLimiterValkeyGlide: ["test/redis/redis-clients.contract.test.ts", "GLIDE"],
}
/** The counterparts that the pairs cover under another name. */
const SAME_AS: Readonly<Record<string, string>> = {
  RateLimiterMemory: "points",
  RateLimiterRedis: "storeClient",
  RateLimiterQueue: "removeTokens",
  RLWrapperBlackAndWhite: "whiteList",
}

describe("the guide for rate-limiter-flexible", () => {
  it("contains a row for every option of every class", () => {
    expect(namesIn(options)).toEqual(optionNames)
  })

  it("contains a row for every method of every class", () => {
    const known = new Set([...optionNames, ...resultNames, ...errorNames])
    expect(namesIn(methods)).toEqual(membersOf(types, ...exported).filter((name) => !known.has(name)))
  })

  it("contains a row for every member of the result and for every class", () => {
    expect(namesIn(yielded)).toEqual(resultNames)
    expect(namesIn(classes)).toEqual(exported)
  })

  it("names only counterparts that have been tested", () => {
    const named = namesWithCounterpart([...options, ...methods, ...yielded, ...classes])
    const tried = [...Object.keys(pairs), ...Object.keys(SHOWN_BY), ...Object.keys(SAME_AS)]
    expect(named).toEqual(tried.sort())
    for (const name of Object.values(SAME_AS)) expect(Object.keys(pairs)).toContain(name)
    expect(notShown(SHOWN_BY)).toEqual([])
  })

  it('lists each option, method and member without a counterpart under "What you lose"', () => {
    const first = guide.text.split(/^## /m).find((section) => section.startsWith("What you lose\n")) ?? ""
    const without = [...options, ...methods, ...yielded].filter(({ becomes }) => /^No count/.test(becomes))
    expect(namesIn(without).filter((name) => !first.includes(`\`${name}\``))).toEqual([])
    expect(without.length).toBeGreaterThan(5)
  })

  it("contains no counterpart that takes more lines than the README of the guides states", () => {
    expect(longCounterparts(namesIn(options), ...files)).toEqual([])
  })
})

describe("replacing rate-limiter-flexible", () => {
  behaveAlike(pairs)
})
