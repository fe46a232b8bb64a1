import "reflect-metadata"
import {
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  type ModuleMetadata,
  Post,
  Req,
  type Type,
  UseGuards,
} from "@nestjs/common"
import { APP_FILTER, ExternalContextCreator, NestFactory } from "@nestjs/core"
import { ExpressAdapter } from "@nestjs/platform-express"
import { FastifyAdapter } from "@nestjs/platform-fastify"
import { createLimiter, InvalidOptionError, type Limiter } from "@sluice/core"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import supertest from "supertest"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  InjectLimiter,
  RateLimit,
  RateLimitException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from "./index.ts"
import { LIMITER } from "./tokens.ts"

const MINUTE = { window: "1 minute", algorithm: "fixed-window" } as const
const DAILY = { name: "daily", field: "ip", limit: 5, window: "1 day" } as const

let clock: ManualClock
let warnings: string[]
const apps: INestApplication[] = []

beforeEach(() => {
  clock = manualClock()
  warnings = []
})
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

const PLATFORMS = [
  ["Express", () => new ExpressAdapter()],
  ["Fastify", () => new FastifyAdapter()],
] as const
type NewAdapter = (typeof PLATFORMS)[number][1]

/** Returns options with a clock that does not advance. */
function limiting(options: object): RateLimitModuleOptions {
  const log = ({ code }: { readonly code: string }) => void warnings.push(code)
  return { clock, logger: { warn: log, error: log }, ...options } as RateLimitModuleOptions
}

/** Starts an app with these modules and controllers. */
async function start(
  metadata: ModuleMetadata,
  adapter: ExpressAdapter | FastifyAdapter = new ExpressAdapter(),
): Promise<INestApplication> {
  class AppModule {}
  Module(metadata)(AppModule)
  const app = await NestFactory.create(AppModule, adapter, { logger: false, abortOnError: false })
  apps.push(app)
  await app.init()
  if (adapter instanceof FastifyAdapter) await adapter.getInstance().ready()
  return app
}

/** Starts an app with the module and these controllers, and returns a function that sends requests to it. */
async function limited(options: object, controllers: Type[], adapter?: ReturnType<NewAdapter>) {
  const app = await start({ imports: [RateLimitModule.forRoot(limiting(options))], controllers }, adapter)
  return askerOf(app)
}

function askerOf(app: INestApplication) {
  return (path: string, headers: Record<string, string> = {}) =>
    supertest(app.getHttpServer()).get(path).set(headers)
}

type Ask = ReturnType<typeof askerOf>

async function statuses(ask: Ask, ...paths: readonly string[]): Promise<number[]> {
  const all: number[] = []
  for (const path of paths) all.push((await ask(path)).status)
  return all
}

@Controller()
class Plain {
  @Get("plain")
  plain() {
    return "ok"
  }
  @Get("other")
  other() {
    return "ok"
  }
}

@Controller()
class Decorated {
  @Get("own")
  @RateLimit({ limit: 1, ...MINUTE })
  own() {
    return "ok"
  }
  @Get("free")
  @SkipRateLimit()
  free() {
    return "ok"
  }
  @Get("undaily")
  @SkipRateLimit("daily")
  undaily() {
    return "ok"
  }
  @Get("own-undaily")
  @RateLimit({ limit: 7, ...MINUTE })
  @SkipRateLimit("daily")
  ownUndaily() {
    return "ok"
  }
}

@Controller("class")
@RateLimit({ limit: 2, ...MINUTE })
class OfClass {
  @Get("a")
  a() {
    return "ok"
  }
  @Get("b")
  b() {
    return "ok"
  }
  @Get("own")
  @RateLimit({ limit: 1, ...MINUTE })
  own() {
    return "ok"
  }
}

describe.each(PLATFORMS)("RateLimitModule on %s", (_platform, newAdapter) => {
  it("limits all handlers together, and sends refusals with the wait", async () => {
    const ask = await limited({ limit: 2, ...MINUTE }, [Plain], newAdapter())
    const first = await ask("/plain")
    expect([first.status, first.text, first.headers.ratelimit]).toEqual([200, "ok", '"ip-1m";r=1;t=60'])
    expect(await statuses(ask, "/other")).toEqual([200])
    const { status, headers, body } = await ask("/plain")
    expect(status).toBe(429)
    expect(headers).toMatchObject({
      "content-type": "application/problem+json",
      "retry-after": "60",
      "ratelimit-policy": '"ip-1m";q=2;w=60',
      "cache-control": "no-store",
    })
    expect(body).toMatchObject({ title: "Quota Exceeded", "violated-policies": ["ip-1m"] })
    clock.advance(60_000)
    expect(await statuses(ask, "/plain")).toEqual([200])
  })

  it("applies the rule of a handler instead of the inline rule", async () => {
    const ask = await limited({ limit: 3, ...MINUTE }, [Plain, Decorated], newAdapter())
    const own = await ask("/own")
    expect(own.headers["ratelimit-policy"]).toBe('"Decorated.own";q=1;w=60')
    expect(await statuses(ask, "/own", "/plain", "/plain", "/plain", "/plain")).toEqual([
      429, 200, 200, 200, 429,
    ])
    expect(await statuses(ask, "/free", "/free", "/free", "/free")).toEqual([200, 200, 200, 200])
    expect((await ask("/free")).headers).not.toHaveProperty("ratelimit")
  })

  it("checks the rule of a handler together with the rules of a list, all or nothing", async () => {
    const ask = await limited({ rules: [DAILY] }, [Plain, Decorated], newAdapter())
    expect(await statuses(ask, "/own", "/own", "/own", "/own")).toEqual([200, 429, 429, 429])
    // The refused requests have taken nothing of the daily limit.
    expect((await ask("/plain")).headers.ratelimit).toMatch(/^"daily";r=3;/)
  })

  it("does not apply rules that a handler skips by name", async () => {
    const ask = await limited(
      { rules: [DAILY, { ...DAILY, name: "other", limit: 9 }] },
      [Decorated],
      newAdapter(),
    )
    expect((await ask("/undaily")).headers["ratelimit-policy"]).toBe('"other";q=9;w=86400')
    const policies = (await ask("/own-undaily")).headers["ratelimit-policy"]
    expect(policies).toBe('"Decorated.ownUndaily";q=7;w=60, "other";q=9;w=86400')
    const times = Array.from({ length: 7 }, () => "/undaily")
    expect(await statuses(ask, ...times, "/undaily")).toEqual([...times.map(() => 200), 429])
  })

  it("checks rules by the user after all guards, even guards of the handler", async () => {
    class Authenticate implements CanActivate {
      canActivate(context: ExecutionContext) {
        const request = context.switchToHttp().getRequest()
        request.user = { id: request.headers["x-user"] }
        return true
      }
    }
    @Controller()
    class Account {
      @Get("account")
      @UseGuards(Authenticate)
      account() {
        return "ok"
      }
    }
    const rules = [
      { name: "address", field: "ip", limit: 4, window: "1 minute" },
      { name: "user", field: "user", limit: 1, window: "1 minute", onMissing: "deny" },
    ]
    const fields = { user: ({ user }: { readonly user?: { readonly id: string } }) => user?.id }
    const ask = await limited({ rules, fields }, [Account], newAdapter())
    const as = async (user: string) => (await ask("/account", { "x-user": user })).status
    expect([await as("ann"), await as("ann"), await as("bob"), await as("bob"), await as("eve")]).toEqual([
      200, 429, 200, 429, 429,
    ])
  })

  it.each([
    ["a string", { body: "slow down" }, "text/plain; charset=utf-8", "slow down"],
    ["another status", { status: 420, body: { slow: true } }, "application/json", '{"slow":true}'],
  ])("sends %s of the rule unchanged", async (_what, rejection, type, text) => {
    const ask = await limited({ limit: 1, ...MINUTE, rejection }, [Plain], newAdapter())
    await ask("/plain")
    const answer = await ask("/plain")
    expect([answer.status, answer.headers["content-type"], answer.text]).toEqual([
      (rejection as { readonly status?: number }).status ?? 429,
      type,
      text,
    ])
  })

  it("passes refusals to the app's exception filter, with the decision and the members of the body", async () => {
    const caught: unknown[] = []
    @Catch()
    class Filter implements ExceptionFilter {
      catch(exception: unknown, host: { switchToHttp(): { getResponse(): object } }) {
        caught.push(exception)
        const response = host.switchToHttp().getResponse() as {
          status(code: number): { send(body: unknown): void }
        }
        const refusal = exception as RateLimitException
        response.status(418).send({ ...refusal.getResponse(), retryAfterMs: refusal.retryAfterMs })
      }
    }
    const app = await start(
      {
        imports: [RateLimitModule.forRoot(limiting({ limit: 1, ...MINUTE }))],
        controllers: [Plain],
        providers: [{ provide: APP_FILTER, useClass: Filter }],
      },
      newAdapter(),
    )
    const ask = askerOf(app)
    await ask("/plain")
    const { status, headers, body } = await ask("/plain")
    expect([status, headers["retry-after"]]).toEqual([418, "60"])
    expect(headers["content-type"]).toBe("application/json; charset=utf-8")
    expect(body).toMatchObject({ title: "Quota Exceeded", status: 429, retryAfterMs: 60_000 })
    expect(caught).toMatchObject([
      {
        code: "SLUICE_RATE_LIMIT_EXCEEDED",
        message: 'Refused by rate limit "ip-1m" (quota): retry after 60000 ms.',
        decision: { allowed: false, policy: "ip-1m" },
        rejection: { status: 429 },
      },
    ])
    expect(caught[0]).toBeInstanceOf(RateLimitException)
  })

  it("refuses held requests with 503 when the app closes", async () => {
    const queue = { kind: "queue", maxWaitMs: 60_000 } as const
    const app = await start(
      {
        imports: [RateLimitModule.forRoot(limiting({ limit: 1, ...MINUTE, throttle: queue }))],
        controllers: [Plain],
      },
      newAdapter(),
    )
    await app.listen(0, "127.0.0.1")
    const ask = async () =>
      (
        await supertest(await app.getUrl())
          .get("/plain")
          .set("Connection", "close")
      ).status
    expect(await ask()).toBe(200)
    const limiter: Limiter = app.get(LIMITER)
    const held = ask()
    while (limiter.status.waiting === 0) await new Promise(setImmediate)
    await app.close()
    expect(await held).toBe(503)
  })
})

describe("@RateLimit", () => {
  it("on a class counts all its handlers together, except handlers with a rule", async () => {
    const ask = await limited({}, [OfClass])
    expect(await statuses(ask, "/class/a", "/class/own", "/class/b", "/class/a", "/class/own")).toEqual([
      200, 200, 200, 429, 429,
    ])
    expect((await ask("/class/a")).headers["ratelimit-policy"]).toBe('"OfClass";q=2;w=60')
  })

  it("counts classes of the same name separately, and handlers that a class inherits", async () => {
    const named = (path: string, Base: Type = Object) => {
      @Controller(path)
      class Users extends Base {
        @Get("list")
        @RateLimit({ limit: 1, ...MINUTE })
        list() {
          return "ok"
        }
      }
      return Users
    }
    const Inherited = (() => {
      @Controller("v3")
      class Inherited extends Decorated {}
      return Inherited
    })()
    const ask = await limited({}, [named("v1"), named("v2"), Decorated, Inherited])
    expect(
      await statuses(
        ask,
        "/v1/list",
        "/v2/list",
        "/v1/list",
        "/v2/list",
        "/own",
        "/v3/own",
        "/own",
        "/v3/own",
      ),
    ).toEqual([200, 200, 429, 429, 200, 200, 429, 429])
  })

  it("on a handler applies in a class that is skipped", async () => {
    @Controller()
    @SkipRateLimit()
    class Free {
      @Get("free")
      free() {
        return "ok"
      }
      @Get("own")
      @RateLimit({ limit: 1, ...MINUTE })
      own() {
        return "ok"
      }
    }
    const ask = await limited({ limit: 1, ...MINUTE }, [Free])
    expect(await statuses(ask, "/free", "/free", "/own", "/own")).toEqual([200, 200, 200, 429])
  })

  it("without a rule in the module limits only its handlers", async () => {
    const ask = await limited({}, [Plain, Decorated])
    expect(await statuses(ask, "/own", "/own", "/plain")).toEqual([200, 429, 200])
    expect((await ask("/plain")).headers).not.toHaveProperty("ratelimit")
  })

  it.each<[string, unknown, RegExp]>([
    ["an unknown member", { limit: 1, ...MINUTE, ttl: 5 }, /@RateLimit of Wrong\.wrong\.ttl/],
    ["no rule", undefined, /@RateLimit of Wrong\.wrong: undefined is not a rule/],
  ])("with %s makes the app's start fail", async (_what, rule, message) => {
    @Controller()
    class Wrong {
      @Get("wrong")
      @RateLimit(rule as never)
      wrong() {
        return "ok"
      }
    }
    const starting = limited({}, [Wrong])
    await expect(starting).rejects.toThrow(InvalidOptionError)
    await expect(starting).rejects.toThrow(message)
  })
})

describe("the options of RateLimitModule", () => {
  it("come from a factory with injected providers, or from a class", async () => {
    @Injectable()
    class Config {
      createRateLimitOptions() {
        return limiting({ limit: 1, ...MINUTE })
      }
    }
    @Module({ providers: [Config], exports: [Config] })
    class ConfigModule {}
    for (const options of [
      {
        imports: [ConfigModule],
        inject: [Config],
        useFactory: async (config: Config) => config.createRateLimitOptions(),
      },
      { useClass: Config },
    ]) {
      const app = await start({ imports: [RateLimitModule.forRootAsync(options)], controllers: [Plain] })
      expect(await statuses(askerOf(app), "/plain", "/plain")).toEqual([200, 429])
    }
  })

  it.each<[string, object, RegExp]>([
    ["a wrong limit", { limit: 0, window: "1 minute" }, /limit: 0 is not/],
    ["an option of the throttler", { ttl: 60_000, limit: 5 }, /ttl/],
    ["no object", undefined as never, /options|undefined/],
  ])("make the start fail if they are %s", async (_what, options, message) => {
    for (const imported of [
      RateLimitModule.forRoot(options as never),
      RateLimitModule.forRootAsync({ useFactory: async () => options as never }),
    ]) {
      const error = await start({ imports: [imported] }).then(
        () => undefined,
        (reason) => reason,
      )
      expect(error).toBeInstanceOf(InvalidOptionError)
      expect(error.message).toMatch(message)
    }
  })

  it("may be a limiter, which stays open when the app closes", async () => {
    const limiter = createLimiter(limiting({ limit: 2, ...MINUTE }) as never)
    const app = await start({
      imports: [RateLimitModule.forRoot({ limiter: limiter as never })],
      controllers: [Plain],
    })
    expect(await statuses(askerOf(app), "/plain", "/plain", "/plain")).toEqual([200, 200, 429])
    await app.close()
    expect((await limiter.decide({ remoteAddress: "192.0.2.1" })).allowed).toBe(true)
    await limiter.close()
  })
})

describe("@InjectLimiter", () => {
  it("injects the limiter, which knows the requests of the platform and closes with the app", async () => {
    @Controller()
    class Quota {
      @InjectLimiter() readonly limiter!: Limiter<object>
      @Get("left")
      async left(request: object) {
        const { remaining } = await this.limiter.peek(request)
        return `${remaining} ${this.limiter.decisionOn(request)?.remaining}`
      }
      @Post("free")
      @SkipRateLimit()
      async free(request: object) {
        return `${(await this.limiter.peek(request)).remaining}`
      }
    }
    // Function calls, because Biome does not parse decorators of parameters.
    for (const name of ["left", "free"] as const) Req()(Quota.prototype, name, 0)
    for (const [, newAdapter] of PLATFORMS) {
      const app = await start(
        { imports: [RateLimitModule.forRoot(limiting({ limit: 5, ...MINUTE }))], controllers: [Quota] },
        newAdapter(),
      )
      expect((await askerOf(app)("/left")).text).toBe("4 4")
      expect((await supertest(app.getHttpServer()).post("/free")).text).toBe("4")
      const { limiter } = app.get(Quota)
      await app.close()
      await expect(limiter.decide({})).rejects.toThrow(/has been closed/)
    }
  })
})

describe("RateLimitGuard", () => {
  it("that is also added to a controller counts each request once, with a warning", async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Twice {
      @Get("twice")
      twice() {
        return "ok"
      }
    }
    const ask = await limited({ limit: 2, ...MINUTE }, [Twice])
    expect(await statuses(ask, "/twice", "/twice", "/twice")).toEqual([200, 200, 429])
    expect(warnings).toEqual(["SLUICE_MOUNTED_TWICE"])
  })

  it.each([
    ["rpc", /cannot limit requests of the context "rpc"/],
    ["http", /cannot limit requests of this platform/],
  ])("throws for an unknown request of the context %s", async (type, message) => {
    const app = await start({
      imports: [RateLimitModule.forRoot(limiting({ limit: 1, ...MINUTE }))],
      controllers: [Plain],
    })
    const plain = app.get(Plain)
    const call = app
      .get(ExternalContextCreator)
      .create(plain, plain.plain, "plain", undefined, undefined, undefined, undefined, undefined, type)
    await expect(call({}, {})).rejects.toThrow(message)
  })
})
