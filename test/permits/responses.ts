import { once } from "node:events"
import type { ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { setTimeout as after, setImmediate as nextTurn } from "node:timers/promises"
import type { Call } from "./clients.ts"

/** The ways in which a handler can respond in a framework. A handler returns what these methods return. */
export interface Reply {
  send(status: number, body?: string): unknown
  stream(body: Readable): unknown
  /** Takes over the response from the framework. Absent if the framework has no response of Node. */
  takeOver?(): ServerResponse
}

/** A response, and how its client receives it. */
export interface ResponseCase {
  /** Default: GET. */
  readonly method?: string
  /** Default: the path of the handler. */
  readonly path?: string
  /** Responds to the request. Default: the framework responds, because it does not know the path. */
  readonly handle?: (reply: Reply) => unknown
  /** What the client does after the handler was called. Default: it reads the response. */
  readonly receive?: (call: Call) => Promise<void>
  /** Whether the handler responds through Node's response, which some frameworks do not have. */
  readonly isTakenOver?: true
}

const forever = new Promise<never>(() => undefined)
/** More than the buffers of a connection hold. */
const LARGE = "x".repeat(8_000_000)

/** A body that never ends. */
function endless(): Readable {
  return new Readable({
    read() {
      setImmediate(() => this.push("x".repeat(1_000)))
    },
  })
}

async function readSlowly(call: Call): Promise<void> {
  await call.status
  await after(30)
  await call.read()
}

/** Koa 2 never closes a response whose stream fails, so the client has to give up. */
async function readUntilFailed(call: Call): Promise<void> {
  await Promise.race([call.read(), after(100)])
  call.hangUp()
}

async function hangUpInBody(call: Call): Promise<void> {
  await call.status
  await nextTurn()
  call.hangUp()
}

/** The responses after which a request must hold no permits, in every framework. */
export const RESPONSES: Readonly<Record<string, ResponseCase>> = {
  "a text": { handle: (reply) => reply.send(200, "ok") },
  "a text in a later turn": { handle: (reply) => nextTurn().then(() => reply.send(200, "ok")) },
  "no body": { handle: (reply) => reply.send(204) },
  "an unmodified page": { handle: (reply) => reply.send(304) },
  "a redirect": { handle: (reply) => reply.send(302, "there") },
  "the headers for HEAD": { method: "HEAD", handle: (reply) => reply.send(200, "ok") },
  "the headers of a stream for HEAD": {
    method: "HEAD",
    handle: (reply) => reply.stream(Readable.from(["a", "b"])),
  },
  "an error of the client": { handle: (reply) => reply.send(400, "no") },
  "an unknown path": { path: "/unknown" },
  "an unknown path for HEAD": { path: "/unknown", method: "HEAD" },
  "a handler that throws": {
    handle() {
      throw new Error("broken")
    },
  },
  "a handler that rejects": {
    async handle() {
      await nextTurn()
      throw new Error("broken")
    },
  },
  "a large body": { handle: (reply) => reply.send(200, LARGE) },
  "a large body for a slow reader": { handle: (reply) => reply.send(200, LARGE), receive: readSlowly },
  "a large body for a client that hangs up": {
    handle: (reply) => reply.send(200, LARGE),
    receive: hangUpInBody,
  },
  "a stream": { handle: (reply) => reply.stream(Readable.from(["a", "b", "c"])) },
  "a stream for a slow reader": {
    handle: (reply) => reply.stream(Readable.from(Array.from({ length: 80 }, () => LARGE.slice(0, 100_000)))),
    receive: readSlowly,
  },
  "a stream without chunks": { handle: (reply) => reply.stream(Readable.from([])) },
  "a stream that fails": {
    receive: readUntilFailed,
    handle: (reply) =>
      reply.stream(
        Readable.from(
          (async function* () {
            yield "a"
            await nextTurn()
            throw new Error("broken")
          })(),
        ),
      ),
  },
  "a stream for a client that hangs up": {
    handle: (reply) => reply.stream(endless()),
    receive: hangUpInBody,
  },
  "no response before the client hangs up": {
    handle: () => forever,
    receive: async (call) => call.hangUp(),
  },
  "no response to HEAD before the client hangs up": {
    method: "HEAD",
    handle: () => forever,
    receive: async (call) => call.hangUp(),
  },
  "a response after the client has hung up": {
    handle: (reply) => after(30).then(() => reply.send(200, "late")),
    receive: async (call) => call.hangUp(),
  },
  "a response of Node": {
    isTakenOver: true,
    handle: (reply) => void reply.takeOver?.().end("ok"),
  },
  "a response of Node in parts": {
    isTakenOver: true,
    async handle(reply) {
      const response = reply.takeOver?.() as ServerResponse
      response.write("a")
      await nextTurn()
      response.end("b")
    },
  },
  "a response of Node that waits for its reader": {
    isTakenOver: true,
    receive: readSlowly,
    async handle(reply) {
      const response = reply.takeOver?.() as ServerResponse
      if (!response.write(LARGE)) await once(response, "drain")
      response.end()
    },
  },
  "a response of Node for a client that hangs up": {
    isTakenOver: true,
    receive: hangUpInBody,
    handle: (reply) => void reply.takeOver?.().write("a"),
  },
  "a response of Node that is destroyed before it begins": {
    isTakenOver: true,
    handle: (reply) => destroy(reply.takeOver?.()),
  },
  "a response of Node that is destroyed in its body": {
    isTakenOver: true,
    handle(reply) {
      const response = reply.takeOver?.() as ServerResponse
      response.write("a", () => destroy(response))
    },
  },
}

/** Ends the connection, or only the stream of the response over HTTP/2. */
function destroy(response: (ServerResponse & { readonly stream?: { destroy(): void } }) | undefined): void {
  if (response?.stream === undefined) response?.destroy()
  else response.stream.destroy()
}
