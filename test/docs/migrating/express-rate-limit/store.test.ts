import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import express, { type Express } from "express"
import { describe, expect, it, onTestFinished } from "vitest"
import { listen } from "../../../contracts/adapter/listen.ts"
import { type Block, readBlocks } from "../../blocks.ts"
import { blocksOf } from "../../documents.ts"
import { runTypeScript } from "../../typescript/run.ts"
import { withRedis } from "../redis.ts"

const redis = withRedis()
const require = createRequire(import.meta.url)

/** The lines that the guide adds. */
const GUIDE = linesOf(blockWith(blocksOf("docs/guides/migrating/express-rate-limit.md"), "SluiceStore"))
const [IMPORT = "", STORE = ""] = ["import { SluiceStore }", "store: new SluiceStore("].map((text) => {
  return GUIDE.find((line) => line.includes(text))?.trim()
})

/** Returns the block of a peer's README that contains a text. */
function exampleOf(peer: string, text: string): Block {
  const folder = join(dirname(require.resolve(peer)), "..")
  return blockWith(readBlocks(`${peer}/readme.md`, readFileSync(join(folder, "readme.md"), "utf8")), text)
}

function blockWith(blocks: readonly Block[], text: string): Block {
  const found = blocks.find((block) => block.text.includes(text))
  if (found === undefined) throw new Error(`no block contains ${text}`)
  return found
}

function linesOf({ text }: Block): string[] {
  return text.split("\n")
}

/** Returns the lines of a text that another text does not have, without their indentation. */
function newLines(after: string, before: string): string[] {
  const known = new Set(before.split("\n").map((line) => line.trim()))
  return after.split("\n").flatMap((line) => (known.has(line.trim()) ? [] : [line.trim()]))
}

/** Runs an example, and returns the answers to one request more than its limit. */
async function meet(block: Block, text: string): Promise<{ statuses: string; headers: (string | null)[] }> {
  await redis.server.command("FLUSHALL")
  const app: Express = express()
  // The example's client would look for Redis at its usual place.
  const here = text.replace("new RedisClient()", "opened")
  await runTypeScript({ ...block, text: here }, { app, client: redis.client, opened: redis.client })
  const { url, close } = await listen(app.use((_req, res) => void res.json({ ok: true })))
  onTestFinished(close)
  const first = await Promise.all(Array.from({ length: 100 }, () => fetch(url)))
  const admitted = first.filter(({ status }) => status === 200).length
  const { status, headers: last } = await fetch(url)
  const names = [...last.keys()].filter((name) => /ratelimit/.test(name))
  return {
    statuses: `${admitted} admitted, then ${status}`,
    headers: names.map(
      (name) =>
        `${name}: ${last
          .get(name)
          ?.replace(/\bt=\d+/, "t=…")
          .replace(/^\d{3,}$/, "…")}`,
    ),
  }
}

describe("the README example of", () => {
  it("express-rate-limit needs one line and its import, and then answers in the same way", async () => {
    const block = exampleOf("express-rate-limit", "// store:")
    const after = `${IMPORT}\n${block.text.replace(/\/\/ store: .*/, STORE)}`
    expect(newLines(after, block.text)).toEqual([IMPORT, STORE])
    const [before, now] = [await meet(block, block.text), await meet(block, after)]
    expect(now).toEqual(before)
    expect(now.statuses).toBe("100 admitted, then 429")
    expect(await redis.server.command("KEYS", "all:*")).toHaveLength(1)
  })

  it("rate-limit-redis needs one line and its import, and then answers in the same way", async () => {
    const block = exampleOf("rate-limit-redis", "new RedisClient()")
    const after = block.text
      .replace(/import .* from 'rate-limit-redis'/, IMPORT)
      .replace(/store: new RedisStore\(\{.*?\n\t\}\),/s, STORE)
    expect(newLines(after, block.text)).toEqual([IMPORT, STORE])
    // The lines that are left out belong to the old store.
    expect(newLines(block.text, after)).toHaveLength(5)
    const [before, now] = [await meet(block, block.text), await meet(block, after)]
    expect(now).toEqual(before)
    expect(now.statuses).toBe("100 admitted, then 429")
  })
})
