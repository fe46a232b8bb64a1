import { afterAll, describe, expect, it } from "vitest"
import { isLongRun } from "../test-length.ts"
import type { Block } from "./blocks.ts"
import { cover, isTyped } from "./cover.ts"
import { blocksOf, findDocuments } from "./documents.ts"
import { stopRedis } from "./preludes/redis.ts"
import { checkTypes } from "./typescript/check.ts"

afterAll(stopRedis)

const documents = findDocuments().map((document) => ({ document, blocks: blocksOf(document) }))

/** Clients for other APIs. Reading their types takes as long as all other compilation. */
const LARGE_TYPES = /from "(octokit|openai|stripe)"/

/** Creates a block that is not part of any document. */
const block = (text: string, run?: string): Block => ({
  document: "docs/page.md",
  line: 7,
  language: "ts",
  text: `${text}\n`,
  ...(run !== undefined && { run }),
})

it("the TypeScript blocks of the documents type-check, and a wrong block is reported", {
  timeout: 600_000,
}, async () => {
  // Check all blocks in one program, because each program takes seconds.
  const told = await checkTypes([
    ...documents
      .flatMap(({ blocks }) => blocks)
      .filter((each) => isTyped(each) && (isLongRun || !LARGE_TYPES.test(each.text))),
    block('app.use(handler)\napp.use(rateLimit({ limit: 5, windw: "1 minute" }))'),
    block('import { ratelimit } from "@sluice/koa"\napp.use(ratelimit({ limit: 5, window: 1 }))'),
    block('app.get("/", { config: { rateLimit: false } }, handler)', "fastify"),
  ])
  expect(told).toEqual([
    expect.stringMatching(/^docs\/page\.md:8: .*windw/s),
    expect.stringMatching(/^docs\/page\.md:7: .*ratelimit/),
  ])
})

describe.each(documents.filter(({ blocks }) => blocks.length > 0))("$document", ({ blocks }) => {
  it.each(blocks)("has a valid $language block in line $line", async (block) => {
    expect(await cover(block)).toEqual([])
  })
})
