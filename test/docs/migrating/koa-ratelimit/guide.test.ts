import { describe, expect, it } from "vitest"
import { namesIn, namesWithCounterpart, readGuide } from "../guide.ts"
import { longCounterparts } from "../lines-of-pairs.ts"
import { behaveAlike } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { OPTIONS } from "./options.ts"
import { optionsRead } from "./options-read.ts"
import { redisOptions } from "./redis-options.ts"

const pairs = { ...OPTIONS, ...redisOptions(await emptyRedis()) }
const files = ["options.ts", "redis-options.ts"].map((name) => new URL(name, import.meta.url))
const options = readGuide("koa-ratelimit.md").rows("Options")

describe("the guide for koa-ratelimit", () => {
  it("contains a row for every option that the code of the old library reads", () => {
    const { byCode, byReadme } = optionsRead()
    expect(namesIn(options)).toEqual(byCode)
    // The README of koa-ratelimit does not mention `status`, and mentions `onLimited` only in an example.
    expect(byReadme).toEqual(byCode.filter((name) => name !== "status" && name !== "onLimited"))
  })

  it("names only counterparts that have been tested", () => {
    // `reset` and `total` are renamed in the same way as `remaining`.
    const tried = Object.keys(pairs).map((name) => name.replace(/,.*/, ""))
    expect(namesWithCounterpart(options)).toEqual([...new Set([...tried, "reset", "total"])].sort())
  })

  it("contains no counterpart that takes more lines than the README of the guides states", () => {
    expect(longCounterparts(namesIn(options), ...files)).toEqual([])
  })
})

describe("replacing koa-ratelimit", () => {
  behaveAlike(pairs)
})
