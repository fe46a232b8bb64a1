import { connect } from "node:net"

const DATA = 0
const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
const PING = 6
const ACK = 1
const END_HEADERS = 4
const HEAD_BYTES = 9

/** An HTTP/2 peer that sends one frame at a time, and can send frames that no normal client sends. */
export interface Frames {
  /** Begins a POST request. */
  headers(stream: number, fields: Readonly<Record<string, string>>): void
  /** Sends a part of the request's body, but not its end. */
  data(stream: number, bytes: Uint8Array): void
  reset(stream: number, code: number): void
  /** Sends these bytes unchanged. */
  raw(bytes: Uint8Array): void
  /** The streams that the server has reset. */
  readonly resetStreams: ReadonlySet<number>
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>
  /** Resolves when the server has read everything that was sent. */
  answered(): Promise<void>
  close(): void
}

/** Connects, and sends the HTTP/2 connection preface (RFC 9113 section 3.4). */
export function openFrames(address: string): Frames {
  const [host, port] = address.split(":")
  const socket = connect(Number(port), host)
  const waiting: (() => void)[] = []
  const resetStreams = new Set<number>()
  let unread: Buffer = Buffer.alloc(0)
  socket.on("data", (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk])
    while (unread.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + unread.readUIntBE(0, 3)
      if (unread.length < end) return
      const isAck = ((unread[4] as number) & ACK) !== 0
      if (unread[3] === SETTINGS && !isAck) socket.write(frame(SETTINGS, 0, Buffer.alloc(0), ACK))
      if (unread[3] === RST_STREAM) resetStreams.add(unread.readUInt32BE(5))
      if (unread[3] === PING && isAck) waiting.shift()?.()
      unread = unread.subarray(end)
    }
  })
  socket.on("error", () => undefined)
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()))
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
  socket.write(frame(SETTINGS, 0))
  return {
    headers: (stream, fields) => socket.write(frame(HEADERS, stream, headersBlock(fields), END_HEADERS)),
    data: (stream, bytes) => socket.write(frame(DATA, stream, bytes)),
    reset(stream, code) {
      const bytes = Buffer.alloc(4)
      bytes.writeUInt32BE(code)
      socket.write(frame(RST_STREAM, stream, bytes))
    },
    raw: (bytes) => void socket.write(bytes),
    resetStreams,
    closed,
    answered: () =>
      new Promise((resolve) => {
        waiting.push(resolve)
        socket.write(frame(PING, 0, Buffer.alloc(8)))
      }),
    close: () => socket.destroy(),
  }
}

/** Returns the fields without indexing. Names and values must be shorter than 128 bytes (RFC 7541 section 6.2.2). */
function headersBlock(fields: Readonly<Record<string, string>>): Buffer {
  const all = Object.entries({ ":method": "POST", ":scheme": "http", ":authority": "localhost", ...fields })
  return Buffer.concat(
    all.map(([name, value]) =>
      Buffer.from(
        `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`,
        "latin1",
      ),
    ),
  )
}

function frame(type: number, stream: number, payload: Uint8Array = Buffer.alloc(0), flags = 0): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
