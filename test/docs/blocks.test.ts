import { afterAll, describe, expect, it } from "vitest"
import { cover, isTyped } from "./cover.ts"
import { blocksOf, findDocuments } from "./documents.ts"
import { stopRedis } from "./preludes/redis.ts"
import { checkTypes } from "./typescript/check.ts"

afterAll(stopRedis)

const documents = findDocuments().map((document) => ({ document, blocks: blocksOf(document) }))

it("what the documents show in TypeScript has the right types", { timeout: 600_000 }, async () => {
  expect(await checkTypes(documents.flatMap(({ blocks }) => blocks).filter(isTyped))).toEqual([])
})

describe.each(documents.filter(({ blocks }) => blocks.length > 0))("$document", ({ blocks }) => {
  it.each(blocks)("line $line: $language", async (block) => {
    expect(await cover(block)).toEqual([])
  })
})
