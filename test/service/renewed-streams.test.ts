import { once } from "node:events"
import { readFileSync } from "node:fs"
import http2, { type ClientHttp2Session, type ClientHttp2Stream, type ServerHttp2Session } from "node:http2"
import { create, toBinary } from "@bufbuild/protobuf"
import { afterEach, expect, it, vi } from "vitest"
import { ShouldForwardRequestRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { STREAMS_A_LIST } from "../../packages/service/src/grpc/renewed-streams.ts"
import { answerTo, beginCall, framed } from "./raw-call.ts"
import { openService, TWO_SERVICES } from "./started.ts"

const AT_ONCE = 20
const file = (name: string): Buffer => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url))

type Streams = ReadonlyMap<number, unknown>

afterEach(() => void vi.restoreAllMocks())

/** Collects the sessions of all HTTP/2 servers that are created from now on. */
function sessionsFromNow(): ServerHttp2Session[] {
  const sessions: ServerHttp2Session[] = []
  const { createServer } = http2
  vi.spyOn(http2, "createServer").mockImplementation((...given: unknown[]) => {
    const server = Reflect.apply(createServer, http2, given)
    server.on("session", (session: ServerHttp2Session) => sessions.push(session))
    return server
  })
  return sessions
}

/** Returns the open streams from Node's internal state. */
function streamsOf(session: ServerHttp2Session | undefined): Streams {
  const state = Object.getOwnPropertySymbols(session).find(({ description }) => description === "state")
  return (session as unknown as Record<symbol, { streams: Streams }>)[state as symbol]?.streams as Streams
}

const open = (client: ClientHttp2Session): ClientHttp2Stream =>
  beginCall(client, "/sluice.v1.RateLimiter/ShouldForwardRequest")

/** Resolves with the gRPC status of the call. */
async function ask(stream: ClientHttp2Stream): Promise<number> {
  const asked = create(ShouldForwardRequestRequestSchema, { serviceId: 2, request: "{}" })
  const answer = answerTo(stream)
  stream.end(framed(toBinary(ShouldForwardRequestRequestSchema, asked)))
  return (await answer).status
}

it.each([
  { how: "without TLS", tls: undefined },
  { how: "with TLS", tls: { cert: file("server.pem"), key: file("server.key"), clientCa: undefined } },
])(
  "the open streams of a connection $how move to a new Map regularly, without an effect on calls",
  async ({ tls }) => {
    const sessions = sessionsFromNow()
    const started = await openService(TWO_SERVICES, { tls })
    const client =
      tls === undefined
        ? http2.connect(`http://${started.grpc}`)
        : http2.connect(`https://${started.grpc}`, { ca: file("ca.pem"), servername: "localhost" })
    client.on("error", () => undefined)
    // The requests of these streams have not fully arrived yet.
    const [answered, cutOff] = [open(client), open(client)]
    const lists = new Set<Streams>()
    for (let calls = 0; calls < 2 * STREAMS_A_LIST; calls += AT_ONCE) {
      const statuses = await Promise.all(Array.from({ length: AT_ONCE }, () => ask(open(client))))
      expect(new Set(statuses)).toEqual(new Set([0]))
      lists.add(streamsOf(sessions[0]))
    }
    expect(sessions).toHaveLength(1)
    expect(lists.size).toBe(3)
    expect([...streamsOf(sessions[0]).keys()]).toEqual([answered.id, cutOff.id])
    expect(await ask(answered)).toBe(0)
    // Destroying the session ends the open streams, which the session finds in its current Map.
    const ended = once(cutOff, "close")
    sessions[0]?.destroy()
    await ended
    expect(streamsOf(sessions[0]).size).toBe(0)
    client.destroy()
  },
)
