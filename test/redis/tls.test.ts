import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { createClient } from "redis"
import { describe, expect, it } from "vitest"
import { freePort } from "../servers/free-port.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { unitsIn } from "./counted.ts"
import { afterwards, checkEachTest } from "./load.ts"

checkEachTest()

const pathOf = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const fileOf = (name: string): Buffer => readFileSync(pathOf(name))

const host = "127.0.0.1"
const port = await freePort()
const { server } = await redisForTests({
  args: [
    ...["--tls-port", `${port}`, "--tls-auth-clients", "yes", "--tls-ca-cert-file", pathOf("ca.pem")],
    ...["--tls-cert-file", pathOf("server.pem"), "--tls-key-file", pathOf("server.key")],
  ],
})

/** The client's certificate and its key. */
const CERTIFICATE = { cert: fileOf("client.pem"), key: fileOf("client.key") }
const CA = { ca: fileOf("ca.pem") }

/**
 * With TLS 1.3, the server refuses the client only after the client's handshake has ended. The reason is lost if the
 * client has already sent a command, because the server resets the connection (RFC 8446, section 4.4.2.4).
 */
const WITHOUT_CERTIFICATE = { ...CA, maxVersion: "TLSv1.2" } as const

type Tls = typeof CA & Partial<typeof CERTIFICATE> & { readonly maxVersion?: "TLSv1.2" }

const CLIENTS = [
  ["ioredis", openIoredis],
  ["node-redis", openNodeRedis],
] as const

/** Opens a client that passes its errors to `onError`, without waiting for its connection. */
function openIoredis(tls: Tls, onError: (error: Error) => void) {
  const client = new Redis({ host, port, tls })
  client.on("error", onError)
  afterwards(() => client.disconnect())
  return client
}

function openNodeRedis(tls: Tls, onError: (error: Error) => void) {
  const client = createClient({ socket: { host, port, tls: true, ...tls } })
  client.on("error", onError)
  client.connect().catch(() => undefined)
  afterwards(() => client.destroy())
  return client
}

function limiterOn(client: Parameters<typeof redisStore>[0]["client"], storeTimeoutMs: number) {
  const store = redisStore({ client, prefix: `${storeTimeoutMs}:` })
  const lines: string[] = []
  const log = (_: object, line: string) => void lines.push(line)
  const limiter = createLimiter({
    ...{ store, storeTimeoutMs, service: "tls", limit: 10, window: "1 day" },
    logger: { warn: log, error: log },
  })
  afterwards(() => limiter.close())
  return { limiter, lines }
}

describe("a server that requires certificates over TLS", () => {
  it.each(CLIENTS)("counts for a client with a certificate (%s)", async (_, open) => {
    await server.command("FLUSHALL")
    const { limiter } = limiterOn(
      open({ ...CA, ...CERTIFICATE }, () => undefined),
      20_000,
    )
    expect(await limiter.decide({ remoteAddress: "192.0.2.1" })).toMatchObject({
      degraded: false,
      remaining: 9,
    })
    expect(await unitsIn(server, "")).toBe(1)
  })

  it.each(CLIENTS)(
    "rejects a client without a certificate, whose limiter decides without Redis and whose error says why (%s)",
    async (_, open) => {
      const errors: string[] = []
      const { limiter, lines } = limiterOn(
        open(WITHOUT_CERTIFICATE, ({ message }) => void errors.push(message)),
        50,
      )
      await until("the client knows the reason", () =>
        errors.some((message) => message.includes("handshake failure")),
      )
      expect(await limiter.decide({ remoteAddress: "192.0.2.1" })).toMatchObject({
        degraded: true,
        allowed: true,
      })
      expect(lines.join()).toContain("because its client has no connection")
    },
  )
})
