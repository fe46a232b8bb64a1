import "reflect-metadata"
import { once } from "node:events"
import type { IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { ApolloDriver } from "@nestjs/apollo"
import { type INestApplication, Module, type Type, UseGuards } from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { GraphQLModule, Mutation, Query, Resolver } from "@nestjs/graphql"
import { WsAdapter } from "@nestjs/platform-ws"
import { SubscribeMessage, WebSocketGateway } from "@nestjs/websockets"
import { memoryStore, type Store } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import {
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from "@sluice/nestjs"
import { io } from "socket.io-client"
import supertest from "supertest"
import { afterEach, describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { methodsOf } from "../packages/core/src/stores/testing/methods-of.ts"

const MINUTE = { window: "1 minute", algorithm: "fixed-window" } as const
const apps: INestApplication[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

/** A store that returns promises, so that resolvers run concurrently. */
function laterStore(): Store {
  const store = memoryStore({ clock: manualClock() })
  return { ...methodsOf(store), take: async (checks) => store.take(checks) }
}

function limiting(options: object): RateLimitModuleOptions {
  return { clock: manualClock(), ...options } as RateLimitModuleOptions
}

async function start(options: object, providers: Type[], imports: object[] = [], sockets?: typeof WsAdapter) {
  class AppModule {}
  Module({ imports: [...(imports as []), RateLimitModule.forRoot(limiting(options))], providers })(AppModule)
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false })
  apps.push(app)
  if (sockets !== undefined) app.useWebSocketAdapter(new sockets(app))
  await app.listen(0, "127.0.0.1")
  return app
}

describe("resolvers of GraphQL", () => {
  @Resolver()
  class Users {
    @Query("name")
    name() {
      return "Ann"
    }
    @Query("free")
    @SkipRateLimit()
    free() {
      return "free"
    }
    @Query("held")
    @RateLimit({ concurrent: 1 })
    held() {
      return "held"
    }
    @Mutation("login")
    @RateLimit({ limit: 3, ...MINUTE })
    login() {
      return "in"
    }
  }
  const typeDefs = "type Query { name: String free: String held: String } type Mutation { login: String }"
  const graphQL = GraphQLModule.forRoot({ driver: ApolloDriver, typeDefs, path: "/graphql" })

  async function asker(options: object) {
    const app = await start(options, [Users], [graphQL])
    return (query: string) => supertest(app.getHttpServer()).post("/graphql").send({ query })
  }

  it.each([
    ["a value", {}],
    ["a promise", { store: laterStore() }],
  ])("count an HTTP request once by the module's rules, if the store returns %s", async (_what, more) => {
    const ask = await asker({ limit: 2, ...MINUTE, ...more })
    const first = await ask("{ a: name b: name c: name free }")
    expect(first.body).toEqual({ data: { a: "Ann", b: "Ann", c: "Ann", free: "free" } })
    expect(first.headers.ratelimit).toBe('"ip-1m";r=1;t=60')
    expect((await ask("{ name }")).body).toEqual({ data: { name: "Ann" } })
    const { status, body, headers } = await ask("{ a: name b: name free }")
    expect([status, body.data, headers["retry-after"]]).toEqual([
      200,
      { a: null, b: null, free: "free" },
      "60",
    ])
    expect(body.errors).toMatchObject([
      { path: ["a"], extensions: { code: "SLUICE_RATE_LIMIT_EXCEEDED", retryAfterMs: 60_000 } },
      { path: ["b"] },
    ])
    expect((await ask("{ free }")).body).toEqual({ data: { free: "free" } })
  })

  it("count each call by the resolver's own rule, so that aliases do not multiply attempts", async () => {
    const ask = await asker({ limit: 9, ...MINUTE })
    const aliases = Array.from({ length: 100 }, (_, i) => `a${i}: login`)
    const { body, headers } = await ask(`mutation { ${aliases.join(" ")} }`)
    expect(Object.values(body.data).filter((value) => value === "in")).toHaveLength(3)
    expect(body.errors).toHaveLength(97)
    expect(headers.ratelimit).toBe('"ip-1m";r=8;t=60, "Users.login";r=0;t=60')
  })

  it("cannot have a rule with concurrent, because nobody says when a call ends", async () => {
    const { body } = await (await asker({ limit: 9, ...MINUTE }))("{ held }")
    expect(body.errors[0].message).toMatch(/cannot limit calls by a rule with concurrent/)
  })

  it("need the HTTP request in their context", async () => {
    const bare = GraphQLModule.forRoot({
      driver: ApolloDriver,
      typeDefs,
      path: "/graphql",
      context: () => ({ req: { headers: {} } }),
    })
    const app = await start({ limit: 2, ...MINUTE }, [Users], [bare])
    const { body } = await supertest(app.getHttpServer()).post("/graphql").send({ query: "{ name }" })
    expect(body.errors[0].message).toMatch(
      /cannot limit resolvers without the HTTP request.*Set the option context/,
    )
  })
})

describe("messages on WebSockets", () => {
  @WebSocketGateway()
  @UseGuards(RateLimitGuard)
  class Chat {
    @SubscribeMessage("say")
    @RateLimit({ limit: 2, ...MINUTE })
    say() {
      return { event: "said", data: "ok" }
    }
  }
  class Remembering extends Chat {
    handleConnection(client: { upgradeReq?: IncomingMessage }, request: IncomingMessage) {
      client.upgradeReq = request
    }
  }
  WebSocketGateway()(Remembering)
  const options = { rules: [], trustedProxies: 1 }
  const portOf = (app: INestApplication) => (app.getHttpServer().address() as AddressInfo).port

  it("of socket.io are counted by the address of the handshake, and refused with a WsException", async () => {
    const app = await start(options, [Chat])
    const connect = (address: string) =>
      io(`http://127.0.0.1:${portOf(app)}`, { forceNew: true, extraHeaders: { "X-Forwarded-For": address } })
    const [ann, other, bob] = [connect("192.0.2.1"), connect("192.0.2.1"), connect("192.0.2.2")]
    const say = (client: typeof ann) =>
      new Promise((resolve) => {
        client.once("said", resolve)
        client.once("exception", resolve)
        client.emit("say", "hello")
      })
    expect([await say(ann), await say(other)]).toEqual(["ok", "ok"])
    expect(await say(ann)).toMatchObject({
      status: "error",
      code: "SLUICE_RATE_LIMIT_EXCEEDED",
      retryAfterMs: 60_000,
    })
    expect(await say(bob)).toBe("ok")
    for (const client of [ann, other, bob]) client.disconnect()
  })

  it("are not limited without the guard on the gateway, which makes the start fail", async () => {
    class Unguarded {
      say() {}
    }
    WebSocketGateway()(Unguarded)
    RateLimit({ limit: 2, ...MINUTE })(Unguarded)
    await expect(start({}, [Unguarded])).rejects.toThrow(
      "@sluice/nestjs cannot limit the gateway Unguarded. Put @UseGuards(RateLimitGuard) on it.",
    )
  })

  it("of ws are counted by the address of the upgrade request, which the gateway stores", async () => {
    const unknown = "Internal server error"
    for (const [gateway, expected] of [
      [Remembering, ["ok", "ok", "SLUICE_RATE_LIMIT_EXCEEDED"]],
      [Chat, [unknown, unknown, unknown]],
    ] as const) {
      const app = await start(options, [gateway], [], WsAdapter)
      const client = new WebSocket(`ws://127.0.0.1:${portOf(app)}`)
      await once(client, "open")
      const said: unknown[] = []
      for (let time = 0; time < 3; time++) {
        client.send(JSON.stringify({ event: "say", data: "hello" }))
        const [reply] = await once(client, "message")
        const { data } = JSON.parse(`${reply}`)
        said.push(data.code ?? data.message ?? data)
      }
      expect(said).toEqual(expected)
      client.terminate()
    }
  })
})
