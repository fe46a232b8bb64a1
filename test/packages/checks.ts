import { expect, it } from "vitest"
import type { Folder } from "./folder.ts"
import { ADAPTERS } from "./manifests.ts"
import { programOf } from "./program.ts"
import type { ModuleSystem, Project } from "./project.ts"
import { meet, quickStart } from "./quick-start.ts"
import { COUNT_IN_REDIS, REDIS_CLIENTS } from "./redis-program.ts"

/** An installation of the packages: the versions beside them, and a module system. */
export interface Place {
  readonly project: Project
  readonly type: ModuleSystem
}

/** Registers a test for each adapter's README: its app starts, admits requests, and refuses with 429. */
export function itLimitsTheAppsOfTheReadmes({ project, type }: Place): void {
  it.each(ADAPTERS)("limits requests in the app from the README of @sluice/%s", async (name) => {
    const app = quickStart(project, name, type)
    const { admitted, first, refused, output } = await meet(project.programs(type), app, 200)
    expect(first).toEqual({ remaining: 99 })
    // Never fewer than the limit. More are possible if a minute begins in between, which is not tested here.
    expect(admitted).toBeGreaterThanOrEqual(100)
    expect(refused.status).toBe(429)
    expect(refused.headers.get("content-type")).toBe("application/problem+json")
    expect(refused.headers.get("ratelimit-policy")).toBe('"ip-1m";q=100;w=60')
    expect(refused.headers.get("ratelimit")).toMatch(/^"ip-1m";r=0;t=\d+$/)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(refused.body).toMatchObject({ status: 429, "violated-policies": ["ip-1m"] })
    expect(output).toBe("")
  })
}

/** Registers a test for each client: processes share a count in a real Redis. `url` is called when the test runs. */
export function itCountsInRedis({ project, type }: Place, url: () => string): void {
  it.each(REDIS_CLIENTS)(
    "counts two processes together in Redis through $client",
    async ({ client, imports, open, close }) => {
      const limiting = { "@sluice/core": ["createLimiter"], "@sluice/core/redis": ["redisStore"] }
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
