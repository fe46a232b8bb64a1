import peer from "@fastify/rate-limit"
import { rateLimit as sluice } from "@sluice/fastify"
import Fastify, { type FastifyInstance } from "fastify"
import { describe, expect, it } from "vitest"
import { runTypeScript } from "../../typescript/run.ts"
import { readGuide } from "../guide.ts"
import { answers, commonClock } from "../pairs.ts"
import { exampleOf, linesChanged } from "../readme-examples.ts"
import { withRedis } from "../redis.ts"
import { times } from "../requests.ts"
import { changed, EXAMPLES, type Example } from "./examples.ts"

const PEER = "@fastify/rate-limit"
const redis = withRedis()
const lines = readGuide("fastify-rate-limit.md").text.split("\n")

/** Runs an example on a new app, or on the given one, and resolves with its statuses. */
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

/** Returns the guide's row for an example. */
const rowOf = (name: string): string | undefined => lines.find((line) => line.startsWith(`| ${name} |`))

/** Logins always fail. */
const tryLogin = async (): Promise<boolean> => false

describe("the README examples of @fastify/rate-limit", () => {
  for (const [name, example] of Object.entries(EXAMPLES)) {
    const { text } = exampleOf(PEER, example.has)
    const after = changed(text, example)

    it(`${name}: answers in the same way after the change`, async () => {
      expect(await statusesOf(example, text, peer)).toEqual(example.expected)
      expect(await statusesOf(example, after, sluice)).toEqual(example.expected)
    })

    it(`${name}: takes as many lines as the guide says`, () => {
      const { written, deleted } = linesChanged(text, after)
      expect(rowOf(name)).toBe(`| ${name} | ${written.length} | ${deleted} |`)
    })
  }

  it("takes at most 3 new lines for the first one", () => {
    const first = EXAMPLES["the first one"] as Example
    const { text } = exampleOf(PEER, first.has)
    expect(linesChanged(text, changed(text, first)).written.length).toBeLessThanOrEqual(3)
  })

  it("failed logins: the old limiter admits one more than its limit", async () => {
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
    }
    const { text } = exampleOf(PEER, example.has)
    const old = Fastify()
    await old.register(peer, { global: false })
    const after = changed(text, example)
    expect(await statusesOf(example, text, peer, old)).toEqual([...times(6, 401), 429])
    expect(await statusesOf(example, after, sluice)).toEqual([...times(5, 401), 429, 429])
    const { written, deleted } = linesChanged(text, after)
    const name = "`createRateLimit`, for failed logins"
    expect(rowOf(name)).toBe(`| ${name} | ${written.length} | ${deleted} |`)
  })
})
