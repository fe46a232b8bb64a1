import {
  CallCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  type StatusObject,
  status,
} from "@grpc/grpc-js"
import { manualClock, memoryStore } from "@sluice/core"
import { tokens } from "@sluice/service"
import { afterAll, beforeAll, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { bytesOf, FORWARD, question } from "./questions.ts"
import { type Started, startService, WAITING } from "./started.ts"

const TOKEN = "token-of-each"
const NOW_MS = 1_800_000_000_000
const MOST_BYTES = 2_000

interface Asked {
  readonly path?: string
  readonly message: Uint8Array
  readonly token?: string
  readonly deadlineMs?: number
  readonly cancels?: boolean
}

/** The parts of a call that a client of @grpc/grpc-js sees. */
interface Seen {
  readonly code: number
  readonly details: string
  readonly trailers: object
  readonly message: string | undefined
}

/** A service with plain calls on or off, and its client. */
class Side {
  readonly readers = new Map<unknown, number>()
  readonly #started: Started
  readonly #client: Client

  private constructor(started: Started) {
    this.#started = started
    this.#client = new Client(started.grpc, credentials.createInsecure(), { "grpc.enable_retries": 0 })
  }

  static async start(plainCalls: boolean): Promise<Side> {
    const side: Side = new Side(
      await startService(WAITING, {
        plainCalls,
        shared: { store: memoryStore({ clock: manualClock(NOW_MS) }), storeTimeoutMs: 20_000 },
        decideTokens: tokens({ "1": TOKEN, "2": TOKEN, "3": TOKEN }),
        bounds: { maxMessageBytes: MOST_BYTES, maxInFlight: 8, maxRequests: 20, arrivalMs: 10_000 },
        onAnswered: (_door, _path, _code, _ms, reader) => side.count(reader),
      }),
    )
    return side
  }

  count(reader: unknown): void {
    this.readers.set(reader, (this.readers.get(reader) ?? 0) + 1)
  }

  ask({
    path = FORWARD,
    message,
    token = TOKEN,
    deadlineMs = 20_000,
    cancels = false,
  }: Asked): Promise<Seen> {
    const metadata = new Metadata()
    if (token !== "") metadata.set("authorization", `Bearer ${token}`)
    const same = (bytes: Buffer): Buffer => bytes
    return new Promise((resolve) => {
      let answer: Buffer | undefined
      const done = (_error: ServiceError | null, value?: Buffer): void => {
        answer = value
      }
      const options = { deadline: Date.now() + deadlineMs, credentials: CallCredentials.createEmpty() }
      const call = this.#client.makeUnaryRequest(
        path,
        same,
        same,
        Buffer.from(message),
        metadata,
        options,
        done,
      )
      call.on("status", ({ code, details, metadata: trailers }: StatusObject) => {
        // Only the library adds a date.
        trailers.remove("date")
        const shown = { code, details, trailers: trailers.toJSON() }
        setImmediate(() => resolve({ ...shown, message: answer?.toString("hex") }))
      })
      if (cancels) setTimeout(() => call.cancel(), 50)
    })
  }

  async stop(): Promise<void> {
    this.#client.close()
    await this.#started.stop()
    expect(this.#started.faults).toEqual([])
  }
}

let on: Side
let off: Side
beforeAll(async () => {
  on = await Side.start(true)
  off = await Side.start(false)
})
afterAll(async () => {
  await on.stop()
  await off.stop()
})

const { OK, CANCELLED, INVALID_ARGUMENT, DEADLINE_EXCEEDED, PERMISSION_DENIED } = status
const { RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAUTHENTICATED } = status

it.each<[what: string, code: number, asked: Asked]>([
  ["an admitted request", OK, { message: question("ada") }],
  ["a request that its queue admits", OK, { message: question("first", 2) }],
  ["a wrong request", INVALID_ARGUMENT, { message: bytesOf({ service: "1", request: "no JSON" }) }],
  ["a request about no service", INVALID_ARGUMENT, { message: bytesOf({ request: "{}" }) }],
  ["bytes that are not a message", INVALID_ARGUMENT, { message: Buffer.from([0xff, 0xff]) }],
  ["an empty message", INVALID_ARGUMENT, { message: Buffer.alloc(0) }],
  ["an unknown method", UNIMPLEMENTED, { path: `${FORWARD}X`, message: question("ada") }],
  ["a call without a token", UNAUTHENTICATED, { message: question("ada"), token: "" }],
  ["a call with a wrong token", PERMISSION_DENIED, { message: question("ada"), token: "wrong" }],
  ["a message that is too long", RESOURCE_EXHAUSTED, { message: Buffer.alloc(MOST_BYTES + 1) }],
  ["a held call after its deadline", DEADLINE_EXCEEDED, { message: question("first", 2), deadlineMs: 200 }],
  ["a held call that its caller cancels", CANCELLED, { message: question("first", 2), cancels: true }],
])("a client of grpc-js gets the same answer to %s", async (_what, code, asked) => {
  const seen = await on.ask(asked)
  expect(seen.code).toBe(code)
  const seenOff = await off.ask(asked)
  if (code !== DEADLINE_EXCEEDED) expect(seenOff).toEqual(seen)
  // The client describes its own deadline with times and addresses.
  else expect(seenOff).toMatchObject({ code, trailers: seen.trailers, message: undefined })
})

it("a client of grpc-js gets the same answer to too many calls", async () => {
  const overload = async (side: Side): Promise<Seen> => {
    const held = Array.from({ length: 8 }, () =>
      side.ask({ message: question("first", 2), deadlineMs: 3_000 }),
    )
    let refused: Seen | undefined
    for (const each of held)
      void each.then((seen) => {
        if (seen.code === status.UNAVAILABLE) refused = seen
      })
    await until("one is refused", () => refused !== undefined)
    await Promise.all(held)
    return refused as Seen
  }
  const [seen, seenOff] = await Promise.all([overload(on), overload(off)])
  expect(seen.trailers).toHaveProperty("grpc-retry-pushback-ms")
  const rounded = ({ trailers, ...rest }: Seen) => ({ ...rest, trailers: Object.keys(trailers).sort() })
  expect(rounded(seenOff)).toEqual(rounded(seen))
})

it("all calls are read by grpc-js when plain calls are off", () => {
  expect([...on.readers.keys()]).toEqual(["plain"])
  expect([...off.readers.keys()]).toEqual(["grpc-js"])
})
