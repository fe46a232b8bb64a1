import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from "node:http2"

/** The result of a call, frame by frame. */
export interface RawAnswer {
  /** The first headers. */
  readonly headers: IncomingHttpHeaders
  /** The gRPC status; NaN when the call ended without a status. */
  readonly status: number
  /** The message of the status, percent-encoded as it was sent. */
  readonly message: string | undefined
  /** The google.rpc.Status, in base64. */
  readonly details: string | undefined
  /** The received messages, each preceded by its prefix. */
  readonly bytes: Buffer
}

/** Returns a message in a gRPC frame. `flag` and `length` can create an invalid prefix. */
export function framed(message: Uint8Array, { flag = 0, length = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

/** Begins a call and sends only its headers. */
export function beginCall(
  session: ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  })
  stream.on("error", () => undefined)
  return stream
}

/** Resolves with the result of a call when its stream has closed for any reason. */
export function answerTo(stream: ClientHttp2Stream): Promise<RawAnswer> {
  let first: IncomingHttpHeaders = {}
  let last: IncomingHttpHeaders = {}
  const chunks: Buffer[] = []
  stream.on("response", (headers) => {
    first = headers
    last = { ...headers, ...last }
  })
  stream.on("trailers", (headers) => {
    last = headers
  })
  stream.on("data", (chunk: Buffer) => chunks.push(chunk))
  return new Promise((resolve) => {
    stream.once("close", () =>
      resolve({
        headers: first,
        status: Number(last["grpc-status"] ?? Number.NaN),
        message: last["grpc-message"] as string | undefined,
        details: last["grpc-status-details-bin"] as string | undefined,
        bytes: Buffer.concat(chunks),
      }),
    )
  })
}

/** Makes a call with this message. Resolves like `answerTo`. */
export function callRaw(
  session: ClientHttp2Session,
  path: string,
  message: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  const stream = beginCall(session, path, headers)
  const answer = answerTo(stream)
  stream.end(framed(message))
  return answer
}

/** Makes a call on a new connection. */
export async function callOnce(
  address: string,
  path: string,
  message: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  const session = openRaw(address)
  const answer = await callRaw(session, path, message, headers)
  session.destroy()
  return answer
}

/** Connects by HTTP/2, without a gRPC client. */
export function openRaw(address: string): ClientHttp2Session {
  const session = connect(`http://${address}`)
  session.on("error", () => undefined)
  return session
}
