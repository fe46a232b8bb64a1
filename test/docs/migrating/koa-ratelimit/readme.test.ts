import { manualClock } from "@sluice/core/testing"
import type Koa from "koa"
import { describe, expect, it } from "vitest"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Block } from "../../blocks.ts"
import { runTypeScript } from "../../typescript/run.ts"
import { answers } from "../pairs.ts"
import { type Edit, edited, exampleOf, expectLinesTold, linesChanged } from "../readme-examples.ts"
import { emptyRedis } from "../redis.ts"
import { fromAddress, pretendAddress, times } from "../requests.ts"

const redis = await emptyRedis()

/** The lines that both examples share. The function `isBlocked` is the logic of the example's `blacklist`. */
const OPTIONS: readonly Edit[] = [
  ["const ratelimit = require('koa-ratelimit')", "const { rateLimit: ratelimit } = require('@sluice/koa')"],
  [
    "duration: 60000,\n  errorMessage: ",
    "rules: [{ field: 'ip', limit: 100, window: 60000, rejection: { body: ",
  ],
  ["Slow Down.',", "Slow Down.' } }],"],
  ["  id: (ctx) => ctx.ip,\n", ""],
  [/headers: \{\n.*\n.*\n.*total: /, "headers: { dialect: 'legacy', prefix: 'Rate-Limit', names: { limit: "],
  [/'\n {2}\},\n.*\n.*disableHeader: false,/, "' } },"],
  ["whitelist:", "skip:"],
  [/ {2}blacklist: .*\n.*\n {2}\},?\n/, ""],
]
const BLOCKING = "app.use((ctx, next) => (isBlocked(ctx) ? ctx.throw(403) : next()));"

const IN_MEMORY: readonly Edit[] = [
  ...OPTIONS,
  ["const db = new Map();", BLOCKING],
  ["  driver: 'memory',\n  db: db,\n", ""],
]
const IN_REDIS: readonly Edit[] = [
  ["const ratelimit", "const { redisStore } = require('@sluice/redis');\nconst ratelimit"],
  ...OPTIONS,
  ["app.use(ratelimit", `${BLOCKING}\napp.use(ratelimit`],
  ["driver: 'redis'", "service: 'shop'"],
  ["db: new Redis()", "store: redisStore({ client: new Redis() })"],
  ["onLimited:", "onRejected:"],
]

/**
 * One request more than the limit, then one request each from the whitelist, from the blacklist, and from another
 * client.
 */
const requests = [
  ...times(101, fromAddress("192.0.2.7")),
  ...["192.0.2.1", "192.0.2.66", "192.0.2.8"].map(fromAddress),
]

/**
 * Runs an example with its comments filled in. Returns the responses of the example, and the addresses that it
 * reported as limited.
 */
async function outcomeOf(block: Block, text: string): Promise<{ all: Response[]; limited: string[] }> {
  await redis.server.command("FLUSHALL")
  const limited: string[] = []
  const here = text
    .replace(/(whitelist|skip): (.*\n.*)\/\/ .*/, "$1: $2return ctx.ip === '192.0.2.1'")
    .replace(/(blacklist): (.*\n.*)\/\/ .*/, "$1: $2return isBlocked(ctx)")
    .replace(/(onLimited|onRejected): (.*\n.*)\/\/ .*/, "$1: $2limited.push(ctx.ip)")
    // The example's own client would connect to Redis at its default address.
    .replace("new Redis()", "opened")
    .replace(/app\.listen\(.*/s, "app.silent = true")
    // A CommonJS module is the default export of its namespace.
    .replace(/const (\w+) = require\('(.*)'\)/g, "import $1 from '$2'")
    .replace(/require\('(.*)'\)/g, 'require("$1")')
  const isBlocked = (ctx: Koa.Context): boolean => ctx.ip === "192.0.2.66"
  const { app } = await runTypeScript({ ...block, text: here }, { opened: redis.client, limited, isBlocked })
  const listener = (app as Koa).callback()
  const all = await answers(
    (req, res) => {
      pretendAddress(req)
      void listener(req, res)
    },
    manualClock(),
    requests,
  )
  return { all, limited }
}

/** Returns the status, the body and the headers of a response, without the time at which the window ends. */
const seen = ({ status, body, headers }: Response): unknown => [
  status,
  body,
  headers["rate-limit-remaining"],
  headers["rate-limit-total"],
  headers["rate-limit-reset"] !== undefined,
]

describe.each([
  ["in memory", "driver: 'memory'", IN_MEMORY, 5],
  ["with Redis", "driver: 'redis'", IN_REDIS, 9],
] as const)("the README example %s", (name, option, edits, most) => {
  const block = exampleOf("koa-ratelimit", option)
  const after = edited(block.text, edits)

  it("needs as many changed lines as the guide states", () => {
    const changed = linesChanged(block.text, after)
    expect(changed.written.length).toBeLessThanOrEqual(most)
    expectLinesTold("koa-ratelimit", `, ${name}`, changed)
  })

  it("has the same statuses, bodies and headers with Sluice", async () => {
    const [before, now] = [await outcomeOf(block, block.text), await outcomeOf(block, after)]
    expect(now.all.map(seen)).toEqual(before.all.map(seen))
    const limited = block.text.includes("onLimited") ? ["192.0.2.7"] : []
    expect([before.limited, now.limited]).toEqual([limited, limited])
    // The whitelist skips the limiter, which then sets no headers.
    expect(before.all[101]?.headers["rate-limit-total"]).toBeUndefined()
    expect(before.all.map(({ status }) => status)).toEqual([...times(100, 200), 429, 200, 403, 200])
  })
})
