import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import type { Block } from "./blocks.ts"
import { blocksOf } from "./documents.ts"
import { makeFolder, type Program, startApp } from "./programs.ts"
import { parseCurl } from "./shell/curl.ts"
import { commandLines } from "./shell/words.ts"
import { blocksTestedBy } from "./shown.ts"

// Runs the programs of the guide in separate processes, on the built packages. `pnpm test` builds them first. `pnpm
// packages` checks that the packages can be packed and used in another project.

const SELF = "test/docs/quick-start.test.ts"
const DOCUMENT = "docs/start/quick-start.md"
const [express, startIt, first, sixth, withRedis, startBoth, withRules, search] = blocksTestedBy(
  SELF,
  DOCUMENT,
  8,
) as Eight
type Eight = [Block, Block, Block, Block, Block, Block, Block, Block]
const [koa] = blocksTestedBy(SELF, "docs/start/koa.md", 1) as [Block]
const [fastify] = blocksTestedBy(SELF, "docs/start/fastify.md", 1) as [Block]

/** Returns the app with its limiter replaced, as the guide describes. */
function withLimiter({ text }: Block): string {
  const line = /^app\.use\(.*\n/m
  expect(express.text.match(new RegExp(line, "gm"))).toHaveLength(1)
  return express.text.replace(line, () => text)
}

/** Sends the requests in a block's curl lines to the programs that replace their ports. */
async function sendCurls({ text }: Block, programs: Readonly<Record<string, Program>>): Promise<Response[]> {
  const responses: Response[] = []
  for (const { words } of commandLines(text).filter(({ words: [program] }) => program === "curl")) {
    const { urls, init } = parseCurl(words)
    for (const url of urls) {
      const { port } = new URL(url)
      const program = programs[port]
      if (program === undefined) throw new Error(`nobody listens on port ${port}`)
      responses.push(await fetch(url.replace(`http://localhost:${port}`, program.url), init))
    }
  }
  return responses
}

/**
 * Returns a response in the form that the guide shows. The remaining seconds depend on the time of the request, so a
 * placeholder replaces them.
 */
function timeless(text: string): string {
  return text.replace(/(t=|Retry-After: |again in )\d+/g, "$1N")
}

/** Returns the parts of a response that the guide shows: the first line, and the headers with these names. */
function headOf({ status, statusText, headers }: Response, shown: readonly string[]): string {
  const names = shown.map((line) => line.split(": ")[0] ?? "")
  return [`HTTP/1.1 ${status} ${statusText}`, ...names.map((name) => `${name}: ${headers.get(name)}`)].join(
    "\n",
  )
}

describe("the quick start", () => {
  it.each([
    ["Express", express],
    ["Fastify", fastify],
    ["Koa", koa],
  ])("shows the actual responses of %s", async (_, app) => {
    const program = await startApp(makeFolder({ "app.js": app.text }))
    const responses = await sendCurls(startIt, { 3000: program })
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
    expect(await responses[0]?.text()).toBe("hello\n")
    for (const [block, response] of [
      [first, responses[0]],
      [sixth, responses[5]],
    ] as const) {
      const [head = "", body] = block.text.trim().split("\n\n")
      const answer = response as Response
      expect(timeless(headOf(answer, head.split("\n").slice(1)))).toBe(timeless(head))
      if (body === undefined) continue
      const told = JSON.stringify(await answer.json())
      expect(JSON.parse(timeless(told))).toEqual(JSON.parse(timeless(body)))
    }
  })

  describe("with Redis", () => {
    let server: RedisServer
    beforeAll(async () => {
      server = await startRedis()
    })
    afterAll(() => server?.stop())

    it("shares a count between two processes, and keeps limiting without Redis", async () => {
      const env = { REDIS_URL: `redis://${server.host}:${server.port}` }
      const folder = makeFolder({ "app.js": withLimiter(withRedis) })
      const programs = { 3000: await startApp(folder, env), 3001: await startApp(folder, env) }
      // On a busy machine, a decision may be made without Redis. The response to such a decision contains no
      // RateLimit header.
      const counted: number[] = []
      while (!counted.includes(429)) {
        for (const { headers, status } of await sendCurls(startBoth, programs)) {
          if (headers.has("ratelimit") && !counted.includes(429)) counted.push(status)
        }
      }
      // If a minute ends during the test, one more request may fit. Two programs with separate counters would admit
      // ten requests.
      expect([6, 7]).toContain(counted.length)
      expect(await server.command("DBSIZE")).toBe(1)
      await server.kill()
      await until(
        "each counts for itself",
        async () => {
          const [response] = await sendCurls(startBoth, programs)
          return response?.status === 200 && !response.headers.has("ratelimit")
        },
        30_000,
      )
      expect(programs[3000].output()).toContain("SLUICE_DEGRADED")
    })
  })

  it("loads rules from a file, and applies its changes", async () => {
    const rules = blocksOf(DOCUMENT).find(({ language }) => language === "yaml")?.text ?? ""
    const folder = makeFolder({ "app.js": withLimiter(withRules), "rules.yaml": rules })
    const program = await startApp(folder)
    const responses = await sendCurls(search, { 3000: program })
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(await responses[2]?.json()).toMatchObject({ "violated-policies": ["search"] })
    const policy = async (): Promise<string> =>
      (await fetch(program.url)).headers.get("ratelimit-policy") ?? ""
    const left = (await fetch(program.url)).headers.get("ratelimit")
    // Two searches and this request have used three of the five units.
    expect(left).toMatch(/^"burst";r=2;/)
    const change = (text: string): void => writeFileSync(join(folder, "rules.yaml"), text)
    change(rules.replace("limit: 5,", "limit: 50,"))
    await until("the file has been read", async () => (await policy()).includes('"burst";q=50'))
    change(rules.replace("limit: 5,", "limit: 50,").replace("limit: 2", "limit: -2"))
    await until("the mistake is told", () => program.output().includes("SLUICE_RULES_REJECTED"))
    expect(program.output()).toContain("rules[1].limit")
    expect(await policy()).toContain('"burst";q=50')
  })

  it("uses the file names of the packed tarballs", () => {
    const guide = readFileSync(new URL(`../../${DOCUMENT}`, import.meta.url), "utf8")
    const named = new Set(guide.match(/sluice-[\w.-]+\.tgz/g))
    const packed = ["core", "express", "redis", "rules"].map((name) => {
      const manifest = readFileSync(new URL(`../../packages/${name}/package.json`, import.meta.url), "utf8")
      return `sluice-${name}-${(JSON.parse(manifest) as { version: string }).version}.tgz`
    })
    expect([...named].sort()).toEqual(packed)
  })
})
