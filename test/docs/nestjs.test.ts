import "reflect-metadata"
import { readFileSync } from "node:fs"
import {
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  Module,
  type Type,
} from "@nestjs/common"
import { APP_FILTER, APP_GUARD, NestFactory } from "@nestjs/core"
import { ExpressAdapter } from "@nestjs/platform-express"
import { FastifyAdapter } from "@nestjs/platform-fastify"
import { Redis } from "ioredis"
import supertest from "supertest"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { AppModule } from "../../examples/src/nestjs/app.module.ts"
import { QuotaController } from "../../examples/src/nestjs/quota.controller.ts"
import { RateLimitFilter } from "../../examples/src/nestjs/rate-limit.filter.ts"
import { ReplacedModule } from "../../examples/src/nestjs/replaced.module.ts"
import { StoredModule } from "../../examples/src/nestjs/stored.module.ts"
import { ThrottledModule } from "../../examples/src/nestjs/throttled.module.ts"
import { UserModule } from "../../examples/src/nestjs/user.module.ts"
import { blocksOf, ROOT } from "./documents.ts"
import { namesIn, readGuide } from "./migrating/guide.ts"
import { redisUrl, stopRedis } from "./preludes/redis.ts"

const GUIDES = ["docs/start/nestjs.md", "docs/migrate/nestjs-throttler.md"] as const
const FOLDER = `${ROOT}examples/src/nestjs/`

const apps: INestApplication[] = []
beforeAll(async () => {
  vi.stubEnv("REDIS_URL", await redisUrl())
})
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await stopRedis()
})

/** Stores the user of a header on the request, as an app's own authentication does. */
class Authentication implements CanActivate {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest()
    request.user = { id: request.headers["x-user"] }
    return true
  }
}

const filter = { provide: APP_FILTER, useClass: RateLimitFilter }
const authentication = { provide: APP_GUARD, useClass: Authentication }

describe.each([
  ["Express", () => new ExpressAdapter()],
  ["Fastify", () => new FastifyAdapter()],
] as const)("the app of the guide on %s", (platform, newAdapter) => {
  /** Starts an app with a module of the guide, and returns a function that sends requests to the app. */
  async function start(imported: Type, controllers: Type[] = [], providers: object[] = []) {
    class RootModule {}
    Module({ imports: [imported], controllers, providers: providers as [] })(RootModule)
    const adapter = newAdapter()
    const app = await NestFactory.create(RootModule, adapter, { logger: ["error"], abortOnError: false })
    apps.push(app)
    await app.init()
    if (adapter instanceof FastifyAdapter) await adapter.getInstance().ready()
    return (method: "get" | "post" | "delete", path: string, headers = {}) =>
      supertest(app.getHttpServer())[method](path).set(headers)
  }

  it("limits all handlers, one handler more strictly, and one not at all", async () => {
    const ask = await start(AppModule)
    for (let time = 0; time < 5; time++) expect((await ask("post", "/login")).status).toBe(201)
    const { status, headers } = await ask("post", "/login")
    expect([status, headers["ratelimit-policy"]]).toEqual([429, '"LoginController.login";q=5;w=60'])
    expect((await ask("get", "/health")).headers).not.toHaveProperty("ratelimit")
  })

  it("sends the response of the exception filter", async () => {
    const ask = await start(AppModule, [], [filter])
    for (let time = 0; time < 5; time++) await ask("post", "/login")
    const { status, headers, body } = await ask("post", "/login")
    expect([status, body]).toEqual([
      429,
      { error: "slow down", rule: "LoginController.login", retryAfterMs: expect.any(Number) },
    ])
    expect(Number(headers["retry-after"])).toBeGreaterThan(0)
  })

  it("limits users in Redis, and shows and resets the quota of a client", async () => {
    const ask = await start(UserModule, [QuotaController], [authentication])
    const as = { "x-user": platform, "x-forwarded-for": "192.0.2.1" }
    expect((await ask("get", "/quota", as)).body).toEqual({ remaining: 99 })
    expect((await ask("get", "/quota", as)).headers["ratelimit-policy"]).toBe(
      '"address";q=300;w=60, "user";q=100;w=60',
    )
    expect((await ask("delete", "/quota", as)).status).toBe(200)
    expect((await ask("get", "/quota", as)).body).toEqual({ remaining: 99 })
  })
})

describe("the guide for @nestjs/throttler", () => {
  it("replaces it in an app whose limits stay the same", async () => {
    const paths = [
      ...["exports", "exports", "exports", "health", "health", "health", "health", "health", "health"],
      ...["reports", "reports", "reports", "reports", "reports", "reports", "exports"],
    ]
    const results: number[][] = []
    for (const module of [ThrottledModule, ReplacedModule]) {
      const app = await NestFactory.create(module, { logger: false })
      apps.push(app)
      await app.init()
      const statuses: number[] = []
      for (const path of paths) statuses.push((await supertest(app.getHttpServer()).get(`/${path}`)).status)
      results.push(statuses)
    }
    expect(results[0]?.filter((status) => status === 429)).toHaveLength(3)
    expect(results[1]).toEqual(results[0])
  })

  it("keeps the throttler, whose blocks two instances of the app share in Redis", async () => {
    const servers: ReturnType<INestApplication["getHttpServer"]>[] = []
    for (let instance = 0; instance < 2; instance++) {
      const app = await NestFactory.create(StoredModule, { logger: false })
      apps.push(app)
      await app.init()
      // The first hits would be counted in the process, because the client is not connected yet.
      await app.get(Redis, { strict: false }).ping()
      servers.push(app.getHttpServer())
    }
    const seen: (string | undefined)[][] = []
    for (let hit = 0; hit < 8; hit++) {
      const { status, headers } = await supertest(servers[hit % 2]).get("/reports")
      seen.push([`${status}`, headers["x-ratelimit-remaining"], headers["retry-after"]])
    }
    const admitted = ["4", "3", "2", "1", "0"].map((remaining) => ["200", remaining, undefined])
    const refused = ["429", undefined, expect.stringMatching(/^(?:600|599)$/)]
    expect(seen).toEqual([...admitted, refused, refused, refused])
  })

  it("keeps the throttler, which limits each instance while Redis is gone", async () => {
    await stopRedis()
    const app = await NestFactory.create(StoredModule, { logger: false })
    apps.push(app)
    await app.init()
    const seen: [status: number, isWithinWindow: boolean][] = []
    for (let hit = 0; hit < 7; hit++) {
      const { status, headers } = await supertest(app.getHttpServer()).get("/reports")
      seen.push([status, Number(headers["retry-after"] ?? 0) <= 60])
    }
    vi.stubEnv("REDIS_URL", await redisUrl())
    expect(seen).toEqual([200, 200, 200, 200, 200, 429, 429].map((status) => [status, true]))
  })

  it("has a row for each option", () => {
    const types = `${ROOT}examples/node_modules/@nestjs/throttler/dist/throttler-module-options.interface.d.ts`
    const [declared = ""] = readFileSync(types, "utf8").split("export interface ThrottlerOptionsFactory")
    const options = new Set([...declared.matchAll(/^ +(\w+)\??: /gm)].map(([, name = ""]) => name))
    expect(options.size).toBeGreaterThan(10)
    expect(namesIn(readGuide("nestjs-throttler.md").rows("Options"))).toEqual(
      [...options, "@SkipThrottle", "@Throttle", "ThrottlerException", "ThrottlerGuard"].sort(),
    )
  })
})

it.each(GUIDES)("%s shows the files of the examples", (guide) => {
  const blocks = blocksOf(guide).filter(({ testedBy }) => testedBy === "test/docs/nestjs.test.ts")
  const files = [...readFileSync(ROOT + guide, "utf8").matchAll(/examples\/src\/nestjs\/([\w.-]+)\)/g)]
  expect(files).toHaveLength(blocks.length)
  for (const [index, [, file]] of files.entries()) {
    expect(blocks[index]?.text).toBe(readFileSync(FOLDER + file, "utf8"))
  }
})
