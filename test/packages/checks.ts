import { expect, it } from "vitest"
import type { Folder } from "./folder.ts"
import { ADAPTERS } from "./manifests.ts"
import { programOf } from "./program.ts"
import type { ModuleSystem, Project } from "./project.ts"
import { meet, quickStart } from "./quick-start.ts"
import { COUNT_IN_REDIS, REDIS_CLIENTS } from "./redis-program.ts"
import { UNDO_HITS, UNDO_IMPORTS } from "./undo-program.ts"

/** An installation of the packages: the versions of other packages next to them, and a module system. */
export interface Place {
  readonly project: Project
  readonly type: ModuleSystem
}

/** The store with which express-rate-limit itself responds. */
const STORE = "express-rate-limit-store"

/** Returns an app for version 6 of express-rate-limit, which uses other option names and older headers. */
export function forVersion6(app: string): string {
  if (!app.includes('"express-rate-limit"')) return app
  return app.replace(/\blimit: (100|async)/g, "max: $1").replaceAll('"draft-8"', '"draft-7"')
}

/**
 * Registers a test for each adapter's README. The app in the README must start, admit requests, and refuse requests
 * with 429.
 */
export function itLimitsTheAppsOfTheReadmes({ project, type }: Place): void {
  const itLimits = "limits requests in the app from the README of @sluice/%s"
  /** Starts an app with a limit of 100 per minute, and checks its responses. */
  async function expectLimited(app: string): Promise<void> {
    const { admitted, first, refused, output } = await meet(project.programs(type), app, 200)
    expect(first).toEqual({ remaining: 99 })
    // The app never admits fewer requests than the limit. The app may admit more if a minute begins during the
    // requests, which is not tested here.
    expect(admitted).toBeGreaterThanOrEqual(100)
    expect(refused.status).toBe(429)
    expect(refused.headers.get("content-type")).toBe("application/problem+json")
    expect(refused.headers.get("ratelimit-policy")).toBe('"ip-1m";q=100;w=60')
    expect(refused.headers.get("ratelimit")).toMatch(/^"ip-1m";r=0;t=\d+$/)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(refused.body).toMatchObject({ status: 429, "violated-policies": ["ip-1m"] })
    expect(output).toBe("")
  }

  it.each(ADAPTERS.filter((name) => name !== STORE))(itLimits, async (name) => {
    await expectLimited(quickStart(project, name, type))
  })

  it('limits requests in an app that registers import("@sluice/fastify")', async () => {
    const named = "register(rateLimit,"
    const app = quickStart(project, "fastify", type)
    expect(app).toContain(named)
    await expectLimited(app.replace(named, 'register(import("@sluice/fastify"),'))
  })

  it.each([STORE])(itLimits, async (name) => {
    const text = quickStart(project, name, type)
    const { version } = JSON.parse(project.read("node_modules/express-rate-limit/package.json"))
    const isVersion6 = version.startsWith("6.")
    const app = isVersion6 ? forVersion6(text) : text
    const { admitted, first, refused, output } = await meet(project.programs(type), app, 200)
    expect(first).toEqual({ hello: "world" })
    expect(admitted).toBeGreaterThanOrEqual(100)
    expect(refused).toMatchObject({ status: 429, body: { error: "slow down" } })
    const header = isVersion6 ? /^limit=100, remaining=0, reset=\d+$/ : /^"100-in-1min"; r=0; t=\d+$/
    expect(refused.headers.get("ratelimit")).toMatch(header)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(output).toBe("")
  })

  it(`undoes the hits of failed requests, and only these, with @sluice/${STORE}`, async () => {
    const folder = project.programs(type)
    folder.write("undo.js", programOf(type, UNDO_IMPORTS, UNDO_HITS))
    expect(await folder.run("node", "undo.js")).toEqual({
      code: 0,
      stdout: '[200,429,429,500,500,500]\n{"totalHits":1}\n',
      stderr: "",
    })
  })
}

/**
 * Registers a test for each Redis client, in which processes share a count in a real Redis. `url` is called when the
 * test runs.
 */
export function itCountsInRedis({ project, type }: Place, url: () => string): void {
  it.each(REDIS_CLIENTS)(
    "counts two processes together in Redis through $client",
    async ({ client, imports, open, close }) => {
      const limiting = { "@sluice/core": ["createLimiter"], "@sluice/redis": ["redisStore"] }
      const program = programOf(type, { ...limiting, ...imports }, `${open}\n${COUNT_IN_REDIS}\n${close}`)
      const env = { REDIS_URL: url(), PREFIX: `${client}-${type}:` }
      const folder: Folder = project.programs(type)
      folder.write("program.js", program)
      for (const stdout of ["[true,true,false]\n", "[false,false,false]\n"]) {
        const ran = await folder.start("node", ["program.js"], env).ended
        expect(ran).toEqual({ code: 0, stdout, stderr: "" })
      }
    },
  )
}
