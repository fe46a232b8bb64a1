// An attacker in a separate process. The attacker sends requests that never end, that a rule of service 3 holds, or
// whose responses it does not read. The first argument is the kind of attack, as JSON. Prints "over" when everything
// has been sent, or the server takes no more, and then keeps its connections until it is killed.
import { connect as connectHttp2 } from "node:http2"
import { connect } from "node:net"
import { gzipSync } from "node:zlib"

const {
  door,
  port,
  path,
  bytes,
  connections,
  streams,
  headers = {},
  bomb = false,
  held = false,
  unread = false,
  ms,
} = JSON.parse(process.argv[2])
const PIECE = 65_536
/** Innocent callers have another address. */
const FROM = { localAddress: "127.0.0.2" }
const zipped = bomb ? gzipSync(Buffer.alloc(bytes)) : undefined
const filling = Buffer.alloc(PIECE, 0x20)

function prefixed(length, flag = 0) {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(length, 1)
  return prefix
}

/** A field of protobuf that has a length. */
function field(number, bytes) {
  const head = [number * 8 + 2]
  let length = bytes.length
  for (; length > 127; length >>>= 7) head.push((length & 127) | 128)
  return Buffer.concat([Buffer.from([...head, length]), bytes])
}

/** Objects without members: nothing else in JSON takes as much memory for each of its bytes. */
const request = `{"x":[${Array(Math.floor(Math.min(bytes, 64_000) / 3) - 3)
  .fill("{}")
  .join(",")}]}`
const rest = Buffer.alloc(Math.max(0, bytes - 65_000), 0x20)
const isBatch = path.endsWith("s")

/** A complete message of about this number of bytes. */
function heldMessage() {
  const single = Buffer.concat([Buffer.from([8, 3]), field(2, Buffer.from(request))])
  // Field 15 is unknown.
  const message = isBatch ? Buffer.concat([field(1, single), field(15, rest)]) : single
  return Buffer.concat([prefixed(message.length), message])
}

function heldBody() {
  const single = `{"serviceId":3,"request":${request}}`
  return isBatch ? `{"requests":[${single}]}${rest}` : single
}

/** A request for each 50 bytes. Their responses are longer. */
function admittedBody() {
  if (!isBatch) return '{"serviceId":1,"request":{"user_id":"a"}}'
  const requests = Array.from({ length: bytes / 50 }, () => '{"serviceId":1,"request":{"user_id":"a"}}')
  return `{"requests":[${requests}]}`
}

function admittedMessage() {
  const single = Buffer.concat([Buffer.from([8, 1]), field(2, Buffer.from('{"user_id":"a"}'))])
  const message = isBatch ? Buffer.concat(Array(bytes / 50).fill(field(1, single))) : single
  return Buffer.concat([prefixed(message.length), message])
}

/** The bytes of each complete request, created once. */
const wholeBytes = unread
  ? door === "http"
    ? Buffer.from(admittedBody())
    : admittedMessage()
  : held
    ? door === "http"
      ? Buffer.from(heldBody())
      : heldMessage()
    : undefined

/** Resolves when a stream takes more, or has closed. */
function drained(to) {
  return new Promise((resolve) => {
    const done = () => {
      to.off("drain", done).off("close", done)
      resolve()
    }
    to.on("drain", done).on("close", done)
  })
}

async function pour(to, length) {
  for (let left = length; left > 0 && to.writable && !to.destroyed; left -= PIECE) {
    if (!to.write(left < PIECE ? filling.subarray(0, left) : filling)) await drained(to)
  }
}

/** Sends the same request again and again on one connection after the other, and never reads. */
async function flood(request) {
  for (;;) {
    const socket = connect({ port, host: "127.0.0.1", ...FROM }).on("error", () => undefined)
    while (!socket.destroyed) if (!socket.write(request)) await drained(socket)
  }
}

/** Calls again and again in one session after the other, and lets the server send no byte of a response. */
async function floodCalls() {
  for (;;) {
    const session = openSession({ initialWindowSize: 0 })
    await Promise.all(
      Array.from({ length: streams }, async () => {
        while (!session.closed && !session.destroyed) await begin(openStream(session))
      }),
    )
    if (!session.destroyed) await new Promise((resolve) => session.once("close", resolve))
  }
}

function openSession(settings = {}) {
  return connectHttp2(`http://127.0.0.1:${port}`, { ...FROM, settings }).on("error", () => undefined)
}

function openStream(session) {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  })
  return stream.on("error", () => undefined).resume()
}

/** A whole compressed message that becomes 1,000 times as long, or the beginning of one that is not compressed. */
function begin(stream) {
  if (unread) return new Promise((resolve) => stream.once("close", resolve).end(wholeBytes))
  if (held) {
    return new Promise((resolve) => stream.once("close", resolve).end(wholeBytes, resolve))
  }
  if (!bomb) {
    stream.write(prefixed(bytes))
    return pour(stream, bytes - 1)
  }
  return new Promise((resolve) => {
    stream.once("close", resolve).write(Buffer.concat([prefixed(zipped.length, 1), zipped]), resolve)
  })
}

const poured = []
for (let i = 0; i < connections; i++) {
  if (door === "http") {
    const head = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${wholeBytes?.length ?? bytes}\r\n\r\n`
    if (unread) {
      poured.push(flood(Buffer.concat([Buffer.from(head), wholeBytes])))
      continue
    }
    const socket = connect({ port, host: "127.0.0.1", ...FROM }).on("error", () => undefined)
    socket.resume()
    socket.write(head)
    if (held) poured.push(new Promise((resolve) => socket.once("close", resolve).write(wholeBytes, resolve)))
    else poured.push(pour(socket, bytes - 1))
    continue
  }
  if (unread) {
    poured.push(floodCalls())
    continue
  }
  const session = openSession()
  for (let j = 0; j < streams; j++) poured.push(begin(openStream(session)))
}
await Promise.race([Promise.all(poured), new Promise((resolve) => setTimeout(resolve, ms))])
console.log("over")
setInterval(() => undefined, 60_000)
