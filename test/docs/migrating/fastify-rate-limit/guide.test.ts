import { describe, expect, it } from "vitest"
import { exportsOf, fileOf, membersOf } from "../declared.ts"
import { namesIn, namesWithCounterpart, notShown, type Row, readGuide, type ShownBy } from "../guide.ts"
import { longCounterparts } from "../lines-of-pairs.ts"
import { behaveAlike } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { CALLBACKS } from "./callbacks.ts"
import { OPTIONS } from "./options.ts"
import { redisOptions } from "./redis-options.ts"

const pairs = { ...OPTIONS, ...CALLBACKS, ...redisOptions(await emptyRedis()) }
const files = ["options.ts", "callbacks.ts", "redis-options.ts"].map((name) => new URL(name, import.meta.url))
const guide = readGuide("fastify-rate-limit.md")
const types = fileOf("@fastify/rate-limit", "types/index.d.ts")
const [options, methods] = ["Options", "Methods and exports"].map(guide.rows) as [Row[], Row[]]

/** The counterparts that other tests cover. */
const SHOWN_BY: ShownBy = {
  groupId: ["test/docs/migrating/fastify-rate-limit/differences.test.ts", "routes of one `groupId`"],
  store: ["test/memory-store.contract.test.ts", "storeContract"],
}

describe("the guide for @fastify/rate-limit", () => {
  it("contains a row for every option of the plugin, of a route and of a separate limiter", () => {
    const all = membersOf(types, "RateLimitPluginOptions", "RateLimitOptions", "CreateRateLimitOptions")
    expect(namesIn(options)).toEqual(all)
  })

  it("contains a row for every decorator of the plugin and every other export", () => {
    const decorators = membersOf(types, "FastifyInstance")
    expect(namesIn(methods)).toEqual([...decorators, "normalizeIP"].sort())
    expect(exportsOf("@fastify/rate-limit")).toEqual(["default", "fastifyRateLimit", "normalizeIP"])
  })

  it("names only counterparts that have been tested", () => {
    const named = namesWithCounterpart([...options, ...methods])
    const tried = Object.keys(pairs).map((name) => name.replace(/,.*/, ""))
    expect(named).toEqual([...new Set([...tried, ...Object.keys(SHOWN_BY)])].sort())
    expect(notShown(SHOWN_BY)).toEqual([])
  })

  it("contains no counterpart that takes more lines than the README of the guides states", () => {
    expect(longCounterparts(namesIn(options), ...files)).toEqual([])
  })
})

describe("replacing @fastify/rate-limit", () => {
  behaveAlike(pairs)
})
