import peer from "@fastify/rate-limit"
import { rateLimit as sluice } from "@sluice/fastify"
import Fastify, { type FastifyInstance } from "fastify"
import { describe, expect, it } from "vitest"
import { runTypeScript } from "../../typescript/run.ts"
import { answers, commonClock } from "../pairs.ts"
import { exampleOf, expectLinesTold, type LinesChanged, linesChanged } from "../readme-examples.ts"
import { emptyRedis } from "../redis.ts"
import { times } from "../requests.ts"
import { changed, EXAMPLES, type Example, FIRST } from "./examples.ts"

const PEER = "@fastify/rate-limit"
const redis = await emptyRedis()

/** Runs an example on a new app, or on the given one, and resolves to its statuses. */
async function statusesOf(
  { has, steps }: Pick<Example, "has" | "steps">,
  text: string,
  rateLimit: unknown,
  fastify = Fastify(),
): Promise<number[]> {
  const clock = commonClock()
  const given = { rateLimit, fastify, Fastify, redis: redis.client, console: { log() {} }, tryLogin }
  const block = { ...exampleOf(PEER, has), text: text.replace("port: 3000", "port: 0") }
  const { fastify: app = fastify } = (await runTypeScript(block, given)) as { fastify?: FastifyInstance }
  app.register(async (scope) => {
    if (!app.hasRoute({ method: "GET", url: "/" })) scope.get("/", async () => "ok")
  })
  await app.ready()
  const served = { listener: app.routing, close: () => app.close() }
  return (await answers(served, clock, steps)).map(({ status }) => status)
}

function linesOf(example: Example): LinesChanged {
  const { text } = exampleOf(PEER, example.has)
  return linesChanged(text, changed(text, example))
}

/** Logins always fail. */
const tryLogin = async (): Promise<boolean> => false

describe("in the README of @fastify/rate-limit,", () => {
  const all = Object.entries({ "the first one": FIRST, ...EXAMPLES })
  it.each(all)('the example "%s" leads to the same responses after the change', async (_name, example) => {
    const { text } = exampleOf(PEER, example.has)
    expect(await statusesOf(example, text, peer)).toEqual(example.expected)
    expect(await statusesOf(example, changed(text, example), sluice)).toEqual(example.expected)
  })

  it("the first example needs as many changed lines as the guide states, and at most 3 new ones", () => {
    const lines = linesOf(FIRST)
    expect(lines.written.length).toBeLessThanOrEqual(3)
    expectLinesTold("fastify-rate-limit", "", lines)
  })

  it.each(all)('the example "%s" needs as many changed lines as this test lists', (_name, example) => {
    const { written, deleted } = linesOf(example)
    expect([written.length, deleted]).toEqual(example.lines)
  })

  it("the old limiter of failed logins admits one request more than its limit", async () => {
    const example: Example = {
      has: "tryLogin",
      edits: [
        ["const checkRateLimit", "import { createLimiter } from '@sluice/core'\nconst checkRateLimit"],
        ["fastify.createRateLimit({ max: 5, timeWindow:", "createLimiter({ limit: 5, window:"],
        ["checkRateLimit(request, { increment: false })", "checkRateLimit.peek(request)"],
        ["status.isExceeded", "!status.allowed"],
        ["await checkRateLimit(request)", "await checkRateLimit.decide(request)"],
      ],
      steps: times(7, { path: "/login", method: "POST" }),
      expected: [],
      lines: [5, 0],
    }
    const { text } = exampleOf(PEER, example.has)
    const old = Fastify()
    await old.register(peer, { global: false })
    const after = changed(text, example)
    expect(await statusesOf(example, text, peer, old)).toEqual([...times(6, 401), 429])
    expect(await statusesOf(example, after, sluice)).toEqual([...times(5, 401), 429, 429])
    const { written, deleted } = linesOf(example)
    expect([written.length, deleted]).toEqual(example.lines)
  })
})
