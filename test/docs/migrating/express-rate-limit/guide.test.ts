import { describe, expect, it } from "vitest"
import { exportedValuesOf, fileOf, membersOf } from "../declared.ts"
import { namesIn, namesWithCounterpart, notShown, type Row, readGuide, type ShownBy } from "../guide.ts"
import { longCounterparts } from "../lines-of-pairs.ts"
import { behaveAlike } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { METHODS } from "./methods.ts"
import { OPTIONS } from "./options.ts"
import { redisOptions } from "./redis-options.ts"

const pairs = { ...OPTIONS, ...METHODS, ...redisOptions(await emptyRedis()) }
const files = ["options.ts", "redis-options.ts"].map((name) => new URL(name, import.meta.url))
const guide = readGuide("express-rate-limit.md")
const types = fileOf("express-rate-limit", "index.d.ts")
const redisTypes = fileOf("rate-limit-redis", "index.d.ts")
const [options, ofRedis, methods] = ["Options", "Options of rate-limit-redis", "Methods and exports"].map(
  guide.rows,
) as [Row[], Row[], Row[]]

/** The counterparts that other tests cover. */
const SHOWN_BY: ShownBy = {
  sendCommandCluster: ["test/redis/cluster.test.ts", "redisStore({"],
  logger: ["packages/core/src/http/guard/warnings.test.ts", "logs at the level of the warning"],
}

describe("the guide for express-rate-limit", () => {
  it("contains a row for every option", () => {
    expect(namesIn(options)).toEqual(membersOf(types, "Options"))
    expect(namesIn(ofRedis)).toEqual(membersOf(redisTypes, "Options"))
  })

  it("contains a row for every method of the middleware and for every other export", () => {
    const exported = exportedValuesOf(types).filter((name) => name !== "rateLimit")
    expect(namesIn(methods)).toEqual([...membersOf(types, "RateLimitRequestHandler"), ...exported].sort())
  })

  it("names only counterparts that have been tested", () => {
    const named = namesWithCounterpart([...options, ...ofRedis, ...methods])
    const tried = Object.keys(pairs).map((name) => name.replace(/,.*/, ""))
    expect(named).toEqual([...new Set([...tried, ...Object.keys(SHOWN_BY)])].sort())
    expect(notShown(SHOWN_BY)).toEqual([])
  })

  it("contains no counterpart that takes more lines than the README of the guides states", () => {
    expect(longCounterparts(namesIn([...options, ...ofRedis]), ...files)).toEqual([])
  })
})

describe("replacing express-rate-limit", () => {
  behaveAlike(pairs)
})
