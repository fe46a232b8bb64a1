import { once } from "node:events"
import { Client, credentials, Server, ServerCredentials, type ServerUnaryCall, status } from "@grpc/grpc-js"
import { afterEach, describe, expect, it } from "vitest"
import { Arrivals } from "../../packages/service/src/bounds/arrivals.ts"
import { LibraryArrivals } from "../../packages/service/src/grpc/library-arrivals.ts"
import { beginCall, openRaw } from "./raw-call.ts"

const WAIT = { timeout: 60_000, interval: 5 }
const PATH = "/test.Echo/Say"
const same = (bytes: Buffer): Buffer => bytes
const definition = {
  path: PATH,
  requestStream: false,
  responseStream: false,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
} as const
type Handle = (call: ServerUnaryCall<Buffer, Buffer>, done: (error: null, bytes: Buffer) => void) => void
const ends: (() => void)[] = []

afterEach(() => {
  for (const end of ends.splice(0)) end()
})

async function clientOf(server: Server, handle: Handle): Promise<Client> {
  server.addService({ say: definition }, { say: handle })
  ends.push(() => server.forceShutdown())
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    )
  })
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  ends.push(() => client.close())
  return client
}

/** Resolves with the answer, or with the code of the error. */
function say(client: Client, text: string): Promise<string | number> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(PATH, same, same, Buffer.from(text), (error, answer) =>
      resolve(error?.code ?? String(answer)),
    )
  })
}

/** Creates a server that counts arrivals, and a list of the refusals because of them. */
function arrivalsOf(arrivalMs: number) {
  const overloads: string[] = []
  const bounds = { mostArriving: 1, mostBytes: 1_000_000, arrivalMs }
  const arrivals = new Arrivals(bounds, { onOverload: (what) => void overloads.push(what) })
  ends.push(() => arrivals.close())
  const { interceptor } = new LibraryArrivals(arrivals, 1_000_000)
  return { server: new Server({ interceptors: [interceptor] }), overloads }
}

describe("a call that is still arriving and is read by @grpc/grpc-js", () => {
  it("counts as arrived once its request is complete, even if the answer takes long", async () => {
    const { server } = arrivalsOf(20)
    const held: (() => void)[] = []
    const client = await clientOf(server, (call, done) => {
      if (call.request.toString() === "release") for (const release of held) release()
      else held.push(() => done(null, Buffer.from("late")))
      if (call.request.toString() === "release") done(null, Buffer.from("at once"))
    })
    const first = say(client, "hold")
    await expect.poll(() => held.length, WAIT).toBe(1)
    // If the first call were still arriving, it would end when a second call that began later ends.
    const half = client.makeClientStreamRequest(PATH, same, same, () => undefined)
    const ended = new Promise((resolve) => half.on("status", ({ code }) => resolve(code)))
    half.on("error", () => undefined)
    expect(await ended).toBe(status.DEADLINE_EXCEEDED)
    expect(await say(client, "release")).toBe("at once")
    expect(await first).toBe("late")
  })

  it("does not count as arriving after its deadline, even if its caller stays", async () => {
    const { server, overloads } = arrivalsOf(60_000)
    const client = await clientOf(server, (_call, done) => done(null, Buffer.from("answer")))
    const session = openRaw(client.getChannel().getTarget().replace(/^dns:/, ""))
    ends.push(() => session.destroy())
    const half = beginCall(session, PATH, { "grpc-timeout": "20m" })
    const [headers] = await once(half, "response")
    expect(Number(headers["grpc-status"])).toBe(status.DEADLINE_EXCEEDED)
    expect(half.writableEnded).toBe(false)
    expect(await say(client, "second")).toBe("answer")
    expect(overloads).toEqual([])
  })
})
