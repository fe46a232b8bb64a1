import { connect, type Socket } from "node:net"

// A client of HTTP/2 that costs a tenth of what a real one does, so that what is measured is the server: frames are made once,
// headers are sent without compression, and of answers only the first bytes of the message are looked at.

const DATA = 0
const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
const PING = 6
const GO_AWAY = 7
const WINDOW_UPDATE = 8
const END_STREAM = 1
const END_HEADERS = 4
const ACK = 1
const HEAD_BYTES = 9
/** Of a message in gRPC: not compressed, and its length. */
const PREFIX_BYTES = 5

/** What came back in a time. */
export interface Load {
  /** Answers with a message. */
  readonly answers: number
  /** Those whose message begins with "yes": field 1 is true. */
  readonly forwarded: number
  readonly seconds: number
  /** Milliseconds that each call took, sorted. */
  readonly tookMs: readonly number[]
}

/** How to ask. */
export interface Ask {
  readonly port: number
  readonly path: string
  /** Messages as their bytes, sent one after another, again and again. */
  readonly messages: readonly Uint8Array[]
  readonly inFlight: number
  readonly forMs: number
}

/** Keeps so many calls in flight on one connection for so long. Rejects where a call fails. */
export function askOverGrpc({ port, path, messages, inFlight, forMs }: Ask): Promise<Load> {
  const head = headersBlock(port, path)
  const calls = messages.map((message) => callFrames(head, message))
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    socket.setNoDelay(true)
    const begun = new Map<number, number>()
    const tookMs: number[] = []
    let nextStream = 1
    let turn = 0
    let answers = 0
    let forwarded = 0
    let startMs = 0
    let unread: Buffer = Buffer.alloc(0)
    let owed = 0
    const fail = (reason: string): void => {
      socket.destroy()
      reject(new Error(`${path}: ${reason}`))
    }
    const send = (count: number): void => {
      const frames: Buffer[] = []
      for (let sent = 0; sent < count; sent++) {
        const { bytes, bodyAt } = calls[turn++ % calls.length] as Call
        const copy = Buffer.from(bytes)
        copy.writeUInt32BE(nextStream, 5)
        copy.writeUInt32BE(nextStream, bodyAt + 5)
        begun.set(nextStream, performance.now())
        nextStream += 2
        frames.push(copy)
      }
      socket.write(Buffer.concat(frames))
    }
    const ended = (stream: number): boolean => {
      const sinceMs = begun.get(stream)
      if (sinceMs === undefined) return false
      begun.delete(stream)
      tookMs.push(performance.now() - sinceMs)
      return true
    }
    const take = (type: number, flags: number, stream: number, payload: Buffer): number => {
      if (type === DATA && payload.length >= PREFIX_BYTES) {
        answers++
        if (payload[PREFIX_BYTES] === 0x08 && payload[PREFIX_BYTES + 1] === 1) forwarded++
        owed += payload.length
      }
      if (type === RST_STREAM || type === GO_AWAY)
        fail(`the server sent ${type}: ${payload.toString("latin1")}`)
      if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0))
      if (type === PING && (flags & ACK) === 0) socket.write(frame(PING, ACK, 0, payload))
      return (type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0 && ended(stream) ? 1 : 0
    }
    socket.on("connect", () => {
      socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
      // As much as may be sent on a stream, and on the connection, without being asked for more.
      socket.write(frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])))
      socket.write(frame(WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff - 65_535)))
      startMs = performance.now()
      send(inFlight)
    })
    socket.on("data", (chunk: Buffer) => {
      const bytes = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
      let at = 0
      let done = 0
      while (bytes.length - at >= HEAD_BYTES) {
        const length = bytes.readUIntBE(at, 3)
        if (bytes.length - at < HEAD_BYTES + length) break
        const payload = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length)
        done += take(bytes[at + 3] as number, bytes[at + 4] as number, bytes.readUInt32BE(at + 5), payload)
        at += HEAD_BYTES + length
      }
      unread = bytes.subarray(at)
      if (owed > 2 ** 26) owed = repay(socket, owed)
      const seconds = (performance.now() - startMs) / 1000
      if (seconds * 1000 < forMs) return done > 0 ? send(done) : undefined
      if (begun.size > 0) return
      socket.destroy()
      resolve({ answers, forwarded, seconds, tookMs: tookMs.sort((one, other) => one - other) })
    })
    socket.on("error", reject)
    socket.on("close", () => reject(new Error(`${path}: the server has closed the connection`)))
  })
}

/** A call's two frames in one, for stream 0, and where the second begins. */
interface Call {
  readonly bytes: Buffer
  readonly bodyAt: number
}

function callFrames(head: Buffer, message: Uint8Array): Call {
  const headers = frame(HEADERS, END_HEADERS, 0, head)
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32BE(message.length, 1)
  const body = frame(DATA, END_STREAM, 0, Buffer.concat([prefix, message]))
  return { bytes: Buffer.concat([headers, body]), bodyAt: headers.length }
}

/** Fields without indexing, so that the server's table of headers stays empty (RFC 7541 section 6.2.2). */
function headersBlock(port: number, path: string): Buffer {
  const field = (name: string, value: string): Buffer =>
    Buffer.concat([
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ])
  // :method POST and :scheme http of the static table (RFC 7541 appendix A).
  return Buffer.concat([
    Buffer.from([0x83, 0x86]),
    field(":path", path),
    field(":authority", `127.0.0.1:${port}`),
    field("content-type", "application/grpc"),
    field("te", "trailers"),
  ])
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function repay(socket: Socket, owed: number): number {
  socket.write(frame(WINDOW_UPDATE, 0, 0, uint32(owed)))
  return 0
}
