import { connect, type Socket } from "node:net"

// An HTTP/2 client that uses a tenth of the CPU time of a real client, so that the server is the bottleneck. The
// client prepares frames once, sends headers without compression, and reads only the first bytes of the message in a
// response.

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
/** Length of the prefix of a gRPC message: the compression flag and the message length. */
const PREFIX_BYTES = 5

/** The responses that one load received. */
export interface Load {
  /** Number of responses that contain a message. */
  readonly answers: number
  /** Number of responses whose message begins with field 1 set to true, which means "forward". */
  readonly forwarded: number
  readonly seconds: number
  /** The sorted durations of the calls in milliseconds. */
  readonly tookMs: readonly number[]
}

/** The calls to make. */
export interface Ask {
  readonly path: string
  /** The encoded messages, which are sent in turn and repeated. */
  readonly messages: readonly Uint8Array[]
  readonly inFlight: number
  /** When to stop: after a time, or after a number of calls. */
  readonly until: { readonly ms: number } | { readonly calls: number }
}

/** A long-lived connection, like the connection of a gateway. */
export interface GrpcLoad {
  /** Keeps `inFlight` calls in flight, and resolves when the last call has ended. Rejects if a call fails. */
  ask(how: Ask): Promise<Load>
  close(): void
}

/** Connects to the port. Rejects if the connection fails. */
export function openGrpcLoad(port: number): Promise<GrpcLoad> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(loadOver(socket, port)))
    socket.setNoDelay(true)
    socket.once("error", reject)
  })
}

/** The state of one call to `ask`. */
interface Asking {
  readonly calls: readonly Call[]
  readonly until: Ask["until"]
  readonly startMs: number
  readonly tookMs: number[]
  /** Number of calls that have been sent. */
  turn: number
  answers: number
  forwarded: number
  readonly resolve: (load: Load) => void
  readonly reject: (error: Error) => void
}

function loadOver(socket: Socket, port: number): GrpcLoad {
  const begun = new Map<number, number>()
  let asking: Asking | undefined
  let nextStream = 1
  let unread: Buffer = Buffer.alloc(0)
  let owed = 0
  const fail = (reason: string): void => {
    socket.destroy()
    asking?.reject(new Error(reason))
    asking = undefined
  }
  const send = (to: Asking, count: number): void => {
    const frames: Buffer[] = []
    for (let sent = 0; sent < count; sent++) {
      const { bytes, bodyAt } = to.calls[to.turn++ % to.calls.length] as Call
      const copy = Buffer.from(bytes)
      copy.writeUInt32BE(nextStream, 5)
      copy.writeUInt32BE(nextStream, bodyAt + 5)
      begun.set(nextStream, performance.now())
      nextStream += 2
      frames.push(copy)
    }
    socket.write(Buffer.concat(frames))
  }
  /** Processes a frame. Returns whether the frame ends a call. */
  const take = (type: number, flags: number, stream: number, payload: Buffer): boolean => {
    if (type === DATA && payload.length >= PREFIX_BYTES && asking !== undefined) {
      asking.answers++
      if (payload[PREFIX_BYTES] === 0x08 && payload[PREFIX_BYTES + 1] === 1) asking.forwarded++
      owed += payload.length
    }
    if (type === RST_STREAM || type === GO_AWAY)
      fail(`the server sent ${type}: ${payload.toString("latin1")}`)
    if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0))
    if (type === PING && (flags & ACK) === 0) socket.write(frame(PING, ACK, 0, payload))
    const sinceMs = begun.get(stream)
    if (sinceMs === undefined || (flags & END_STREAM) === 0 || (type !== DATA && type !== HEADERS))
      return false
    begun.delete(stream)
    asking?.tookMs.push(performance.now() - sinceMs)
    return true
  }
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
  // Set the flow-control windows of streams and of the connection to their maximum.
  socket.write(frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])))
  socket.write(frame(WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff - 65_535)))
  socket.on("data", (chunk: Buffer) => {
    const bytes = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
    let at = 0
    let done = 0
    while (bytes.length - at >= HEAD_BYTES) {
      const length = bytes.readUIntBE(at, 3)
      if (bytes.length - at < HEAD_BYTES + length) break
      const payload = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length)
      if (take(bytes[at + 3] as number, bytes[at + 4] as number, bytes.readUInt32BE(at + 5), payload)) done++
      at += HEAD_BYTES + length
    }
    unread = bytes.subarray(at)
    if (owed > 2 ** 26) owed = repay(socket, owed)
    if (asking === undefined) return
    const tookMs = performance.now() - asking.startMs
    const more = Math.min(done, callsLeft(asking, tookMs))
    if (more > 0) send(asking, more)
    if (begun.size > 0) return
    const { answers, forwarded, tookMs: each, resolve } = asking
    asking = undefined
    resolve({ answers, forwarded, seconds: tookMs / 1000, tookMs: each.sort((one, other) => one - other) })
  })
  socket.on("error", (error) => fail(error.message))
  socket.on("close", () => fail("the server has closed the connection"))
  return {
    ask: ({ path, messages, inFlight, until }) =>
      new Promise((resolve, reject) => {
        const head = headersBlock(port, path)
        const calls = messages.map((message) => callFrames(head, message))
        const startMs = performance.now()
        asking = { calls, until, startMs, tookMs: [], turn: 0, answers: 0, forwarded: 0, resolve, reject }
        send(asking, inFlight)
      }),
    close: () => socket.destroy(),
  }
}

/** Returns how many calls may still be sent. */
function callsLeft({ until, turn }: Asking, tookMs: number): number {
  if ("calls" in until) return until.calls - turn
  return tookMs < until.ms ? Number.POSITIVE_INFINITY : 0
}

/** The two frames of a call in one buffer, for stream 0, and the offset of the second frame. */
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

/** Encodes header fields without indexing, so that the server's dynamic table stays empty (RFC 7541 section 6.2.2). */
function headersBlock(port: number, path: string): Buffer {
  const field = (name: string, value: string): Buffer =>
    Buffer.concat([
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ])
  // The first two bytes are :method POST and :scheme http in the static table (RFC 7541 appendix A).
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
