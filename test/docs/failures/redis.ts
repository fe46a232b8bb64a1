import { setTimeout as sleep } from "node:timers/promises"
import { rateLimit } from "@sluice/express"
import { instrument } from "@sluice/otel"
import { redisStore } from "@sluice/redis"
import express from "express"
import { Redis } from "ioredis"
import type { TestContext } from "vitest"
import { listen } from "../../contracts/adapter/listen.ts"
import { startMetering } from "../../otel/metering.ts"
import { freePort } from "../../servers/free-port.ts"
import { type RedisServer, startRedis } from "../../servers/redis-server.ts"
import { startProxy, type TcpProxy } from "../../servers/tcp-proxy.ts"
import { until } from "../../servers/until.ts"

/** Timeout of Redis calls, which is long enough for a reply on a busy machine. */
const storeTimeoutMs = 500

/** A Redis server, and the network in front of it. */
interface Server {
  readonly redis: RedisServer
  readonly network: TcpProxy
}

interface Failure {
  /** True if the client loses its connection. Pending calls then fail with a different error from later calls. */
  readonly disconnects?: boolean
  begin(server: Server): unknown
  end(server: Server): unknown
}

/** The failures, by their names in the guide. */
export const REDIS_FAILURES: Readonly<Record<string, Failure>> = {
  "is slow": {
    begin({ network }) {
      network.delayMs = 2 * storeTimeoutMs
    },
    end({ network }) {
      network.delayMs = 0
    },
  },
  "is frozen, or the network drops what is sent": {
    begin: ({ redis }) => redis.freeze(),
    end: ({ redis }) => redis.thaw(),
  },
  "is gone": {
    disconnects: true,
    begin: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
  },
  "refuses connections": {
    disconnects: true,
    begin({ network }) {
      network.refuse()
      network.cut()
    },
    end: ({ network }) => network.accept(),
  },
  "is full": {
    begin: ({ redis }) => redis.command("CONFIG", "SET", "maxmemory", 1),
    end: ({ redis }) => redis.command("CONFIG", "SET", "maxmemory", 0),
  },
  "is read-only, a replica without a primary": {
    begin: async ({ redis }) => redis.command("REPLICAOF", redis.host, await freePort()),
    end: ({ redis }) => redis.command("REPLICAOF", "NO", "ONE"),
  },
  "refuses a command, by its ACL": {
    begin: ({ redis }) => redis.command("ACL", "SETUSER", "default", "-evalsha", "-eval"),
    end: ({ redis }) => redis.command("ACL", "SETUSER", "default", "+evalsha", "+eval"),
  },
  "sends an invalid reply": {
    begin: ({ network }) => network.answerWith("+OK\r\n"),
    end({ network }) {
      network.answerWith(undefined)
      // A client that received invalid data may be out of sync with the server.
      network.cut()
    },
  },
}

/**
 * The observed responses, errors and log codes, from the beginning of a failure until the recovery.
 */
interface Seen {
  readonly statuses: readonly number[]
  /** The header fields of each response. */
  readonly told: readonly {
    readonly policy: boolean
    readonly quota: boolean
    readonly retryAfter: boolean
  }[]
  /**
   * True if the first five requests waited for the full timeout. On a busy machine, other failures may also take that
   * long.
   */
  readonly waited: boolean
  readonly errors: Readonly<Record<string, number>>
  /** The codes that were logged from the beginning of the failure until the recovery. */
  readonly codes: readonly string[]
  /** The message of the first of these codes. */
  readonly message: string
}

/** Sends requests to an Express app with a limit of 10 in Redis, while Redis fails and until it counts again. */
export async function breakRedis(what: string, onTestFinished: TestContext["onTestFinished"]): Promise<Seen> {
  const failure = REDIS_FAILURES[what]
  if (failure === undefined) throw new Error(`nobody knows how a Redis "${what}"`)
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const network = await startProxy(redis)
  onTestFinished(() => network.close())
  const client = new Redis(network.port, network.host, { retryStrategy: () => 20 })
  client.on("error", () => undefined)
  onTestFinished(() => client.disconnect())
  // Connect first, so that no decision is degraded before the failure.
  await client.ping()
  const codes: string[] = []
  const messages: string[] = []
  const log = ({ code }: { readonly code: string }, message: string): void => {
    codes.push(code)
    messages.push(message)
  }
  // The clock must advance, because the circuit breaker waits for one second. The window of the limit, which is a
  // day, does not end meanwhile.
  let skippedMs = 0
  const clock = { now: () => Date.UTC(2024, 0, 1) + performance.now() + skippedMs }
  const limits = rateLimit({
    service: "shop",
    limit: 10,
    window: "1 day",
    store: redisStore({ client, clock }),
    storeTimeoutMs,
    clock,
    trustedProxies: 1,
    logger: { warn: log, error: log },
  })
  onTestFinished(() => limits.limiter.close())
  const metering = startMetering()
  instrument(limits.limiter, { meterProvider: metering.meterProvider })
  const app = express()
  app.use(limits)
  app.get("/", (_req, res) => void res.json({}))
  const { url, close } = await listen(app)
  onTestFinished(close)
  const ask = (client: string) => fetch(url, { headers: { "x-forwarded-for": client } })
  let others = 0
  // Use a new client each time, because cached refusals do not need Redis.
  const countsInRedis = async (): Promise<boolean> =>
    (await ask(`198.51.100.${++others}`)).headers.has("ratelimit")
  await until("it counts in Redis", countsInRedis)
  // At most once per second, the limiter checks for blocked clients after a decision. No event shows when that check
  // has ended.
  await sleep(300)
  const before = await metering.values("sluice.store.errors", "error.type")
  codes.length = 0
  messages.length = 0

  await failure.begin({ redis, network })
  if (failure.disconnects) await until("the client knows", () => client.status !== "ready")
  const startedAt = performance.now()
  let waitedMs = 0
  const responses: Response[] = []
  for (let nth = 1; nth <= 12; nth++) {
    responses.push(await ask("192.0.2.1"))
    if (nth === 5) waitedMs = performance.now() - startedAt
  }
  const isOpen = async (): Promise<boolean> => (await metering.values("sluice.store.breaker.open"))[""] === 1
  await until("no call is waiting", async () => {
    await ask("192.0.2.1")
    return isOpen()
  })
  await ask("192.0.2.1")
  const after = await metering.values("sluice.store.errors", "error.type")
  await failure.end({ redis, network })
  await until("it counts in Redis again", countsInRedis)
  // A store counts as recovered after ten seconds without a failure.
  skippedMs = 10_000
  await until("it has recovered", async () => (await countsInRedis()) && codes.length > 1)
  const errors = Object.entries(after).map(([type, count]) => [type, count - (before[type] ?? 0)] as const)
  return {
    statuses: responses.map(({ status }) => status),
    told: responses.map(({ headers }) => ({
      policy: headers.has("ratelimit-policy"),
      quota: headers.has("ratelimit"),
      retryAfter: headers.has("retry-after"),
    })),
    // A timer may fire slightly early, because it counts from the start of the turn of the event loop that sets it.
    waited: waitedMs >= 5 * (storeTimeoutMs - 10),
    errors: Object.fromEntries(errors.filter(([, count]) => count > 0)),
    codes,
    message: messages[0] ?? "",
  }
}
