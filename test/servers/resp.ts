import { connect, type Socket } from "node:net"

/** The error for an error reply of the server, such as `WRONGTYPE …`. The message is the text of the reply. */
export class ReplyError extends Error {
  override readonly name = "ReplyError"
}

interface Pending {
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** A timeout that only ends a test that would hang. The timeout is long enough for a busy server. */
const COMMAND_TIMEOUT_MS = 30_000
const CRLF = Buffer.from("\r\n")

/**
 * A RESP2 connection. The first command opens the connection, and the first command after a failure opens it again.
 * The class shares no code with the clients under test, so it works even if they are broken.
 */
export class RespConnection {
  readonly #host: string
  readonly #port: number
  #socket: Socket | undefined
  #received: Buffer = Buffer.alloc(0)
  #pending: Pending[] = []

  constructor(host: string, port: number) {
    this.#host = host
    this.#port = port
  }

  /**
   * Sends a command and resolves to its reply: a UTF-8 string, a number, null, or an array of these. An error inside
   * an array is a ReplyError at its position. Commands that are sent before earlier replies are pipelined, in order.
   * Rejects with ReplyError for an error reply. Rejects with an Error if the connection breaks, or if no reply
   * arrives within 30 s.
   */
  command(...args: readonly (string | number | Buffer)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.#open()
      const timer = setTimeout(() => {
        this.#break(socket, new Error(`no reply to ${String(args[0])} in ${COMMAND_TIMEOUT_MS} ms`))
      }, COMMAND_TIMEOUT_MS)
      this.#pending.push({ resolve, reject, timer })
      socket.write(encode(args))
    })
  }

  /** Closes the connection. All commands without a reply are then rejected. */
  close(): void {
    if (this.#socket !== undefined) this.#break(this.#socket, new Error("the connection was closed"))
  }

  #open(): Socket {
    if (this.#socket !== undefined) return this.#socket
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
    socket.on("data", (bytes) => this.#read(socket, bytes))
    socket.on("error", (error) => this.#break(socket, error))
    // React to "end" as well as "close". Otherwise, commands that are written between the two events would be lost.
    socket.on("end", () => this.#break(socket, new Error("the server closed the connection")))
    socket.on("close", () => this.#break(socket, new Error("the server closed the connection")))
    // The timer of a command keeps this process alive, but an idle connection does not.
    socket.unref()
    this.#socket = socket
    return socket
  }

  #read(socket: Socket, bytes: Buffer): void {
    // Ignore late bytes of an abandoned connection.
    if (socket !== this.#socket) return
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    let from = 0
    for (;;) {
      const parsed = parse(this.#received, from)
      if (parsed === undefined) break
      from = parsed.end
      const pending = this.#pending.shift()
      if (pending === undefined) continue
      clearTimeout(pending.timer)
      if (parsed.value instanceof ReplyError) pending.reject(parsed.value)
      else pending.resolve(parsed.value)
    }
    this.#received = this.#received.subarray(from)
  }

  #break(socket: Socket, error: Error): void {
    socket.destroy()
    if (socket !== this.#socket) return
    this.#socket = undefined
    this.#received = Buffer.alloc(0)
    const pending = this.#pending
    this.#pending = []
    for (const { reject, timer } of pending) {
      clearTimeout(timer)
      reject(error)
    }
  }
}

function encode(args: readonly (string | number | Buffer)[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`)]
  for (const arg of args) {
    const bytes = Buffer.isBuffer(arg) ? arg : Buffer.from(String(arg))
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, CRLF)
  }
  return Buffer.concat(parts)
}

interface Parsed {
  readonly value: unknown
  readonly end: number
}

/** Returns the reply that starts at `from`, or undefined if it is not complete. */
function parse(bytes: Buffer, from: number): Parsed | undefined {
  const lineEnd = bytes.indexOf(CRLF, from)
  if (lineEnd === -1) return undefined
  const line = bytes.toString("utf8", from + 1, lineEnd)
  const next = lineEnd + 2
  switch (String.fromCharCode(bytes[from] ?? 0)) {
    case "+":
      return { value: line, end: next }
    case "-":
      return { value: new ReplyError(line), end: next }
    case ":":
      return { value: Number(line), end: next }
    case "$":
      return parseBulk(bytes, next, Number(line))
    case "*":
      return parseArray(bytes, next, Number(line))
    default:
      return { value: new ReplyError(`not RESP: ${line}`), end: next }
  }
}

function parseBulk(bytes: Buffer, from: number, length: number): Parsed | undefined {
  if (length === -1) return { value: null, end: from }
  if (bytes.length < from + length + 2) return undefined
  return { value: bytes.toString("utf8", from, from + length), end: from + length + 2 }
}

function parseArray(bytes: Buffer, from: number, length: number): Parsed | undefined {
  if (length === -1) return { value: null, end: from }
  const values: unknown[] = []
  let end = from
  for (let i = 0; i < length; i++) {
    const item = parse(bytes, end)
    if (item === undefined) return undefined
    values.push(item.value)
    end = item.end
  }
  return { value: values, end }
}
