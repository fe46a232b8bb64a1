import { manualClock } from "@sluice/core/testing"
import express from "express"
import { describe, expect, it } from "vitest"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Block } from "../../blocks.ts"
import { blocksOf } from "../../documents.ts"
import { runTypeScript } from "../../typescript/run.ts"
import { answers } from "../pairs.ts"
import { blockWith, type Edit, edited, exampleOf, expectLinesTold, linesChanged } from "../readme-examples.ts"
import { emptyRedis } from "../redis.ts"
import { fromAddress, pretendAddress, times } from "../requests.ts"

const redis = await emptyRedis()

/** The lines that the guide tells the user to add for the store. */
const [IMPORT = "", STORE = ""] = ["import { SluiceStore }", "store: new SluiceStore("].map((text) => {
  const block = blockWith(blocksOf("docs/migrate/express-rate-limit-store.md"), "SluiceStore")
  return block.text
    .split("\n")
    .find((line) => line.includes(text))
    ?.trim()
})

/** The edits that replace express-rate-limit in its own example. */
const REPLACED: readonly Edit[] = [
  ["'express-rate-limit'", "'@sluice/express'"],
  ["windowMs:", "window:"],
  ["ipv6Subnet:", "ipv6Prefix:"],
  [/\tstandardHeaders: .*\n/, ""],
  [/\tlegacyHeaders: .*\n/, ""],
]

/** One request more than the limit, then a request from the same /56 network, and a request from another network. */
const requests = [
  ...times(101, fromAddress("2001:db8:0:100::1")),
  fromAddress("2001:db8:0:101::1"),
  fromAddress("2001:db8:0:200::1"),
]
const asLimited = [...times(100, 200), 429, 429, 200]

/** Runs an example with an empty Redis, and returns its responses to the requests. */
async function answersOf(block: Block, text: string): Promise<Response[]> {
  await redis.server.command("FLUSHALL")
  const app = express().use((req, _res, next) => {
    pretendAddress(req)
    next()
  })
  // The example's own client would connect to Redis at its default address.
  const here = text.replace("new RedisClient()", "opened")
  await runTypeScript({ ...block, text: here }, { app, client: redis.client, opened: redis.client })
  app.use((_req, res) => void res.send("ok"))
  return answers(app, manualClock(), requests)
}

const statusesOf = (all: readonly Response[]): number[] => all.map(({ status }) => status)

/** Returns the rate limit headers. The times at which hits return differ, because Sluice's window slides. */
const headersOf = (all: readonly Response[]): string[] =>
  all.flatMap(({ headers }) =>
    Object.entries(headers)
      .filter(([name]) => name.includes("ratelimit"))
      .map(([name, value]) => `${name}: ${name.endsWith("reset") ? "…" : value.replace(/\bt=\d+/, "t=…")}`),
  )

describe("the README example of express-rate-limit", () => {
  const block = exampleOf("express-rate-limit", "// store:")

  it("has the same statuses with Sluice after the changes in the guide", async () => {
    const after = edited(block.text, REPLACED)
    const changed = linesChanged(block.text, after)
    expect(changed.written.length).toBeLessThanOrEqual(3)
    expectLinesTold("express-rate-limit", ", with any store", changed)
    for (const text of [block.text, after])
      expect(statusesOf(await answersOf(block, text))).toEqual(asLimited)
  })

  it("needs only an import and one line for SluiceStore, and then responds in the same way", async () => {
    const after = `${IMPORT}\n${edited(block.text, [[/\/\/ store: .*/, STORE]])}`
    const changed = linesChanged(block.text, after)
    expect(changed.written).toEqual([IMPORT, STORE])
    expectLinesTold("express-rate-limit-store", "", changed)
    const [before, now] = [await answersOf(block, block.text), await answersOf(block, after)]
    expect(headersOf(now)).toEqual(headersOf(before))
    expect(statusesOf(now)).toEqual(asLimited)
    expect(await redis.server.command("KEYS", "all:*")).toHaveLength(2)
  })
})

it("the README example of rate-limit-redis needs only an import and one line for SluiceStore", async () => {
  const block = exampleOf("rate-limit-redis", "new RedisClient()")
  const after = edited(block.text, [
    [/import .* from 'rate-limit-redis'/, IMPORT],
    [/store: new RedisStore\(\{.*?\n\t\}\),/s, STORE],
  ])
  expect(linesChanged(block.text, after)).toEqual({ written: [IMPORT, STORE], deleted: 3 })
  const [before, now] = [await answersOf(block, block.text), await answersOf(block, after)]
  expect(headersOf(now)).toEqual(headersOf(before))
  expect(statusesOf(now)).toEqual(asLimited)
})
