import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { connect } from "node:net"
import { text } from "node:stream/consumers"

export interface Ask {
  /** Default GET. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Response {
  readonly status: number
  /** Response headers with lowercase names. Repeated fields are joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Sends one request on a separate connection. Uses Node directly, because a client library would take as much CPU
 * time as the server.
 */
export async function ask(
  url: string,
  target: string,
  { method = "GET", headers = {}, body }: Ask = {},
): Promise<Response> {
  // For methods that usually have no body, Node does not set Content-Length.
  const length = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) }
  const sent = request(url + target, { method, headers: { ...length, ...headers }, agent: false }).end(body)
  const [received] = (await once(sent, "response")) as [IncomingMessage]
  return {
    status: received.statusCode as number,
    headers: joined(received.headers),
    body: await text(received),
  }
}

/** A response exactly as it arrived over the wire. */
export interface Bytes {
  readonly status: number
  readonly body: string
}

/** Sends a request with exactly this target. An HTTP client would normalize the target first. */
export function askExactly(url: string, target: string, method = "GET"): Promise<Bytes> {
  const { hostname, port, host } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let text = ""
    socket.setEncoding("latin1")
    socket.on("data", (chunk: string) => {
      text += chunk
    })
    socket.once("error", reject)
    socket.once("end", () => {
      const end = text.indexOf("\r\n\r\n")
      resolve({ status: Number(text.split(" ", 2)[1]), body: text.slice(end + 4) })
    })
    socket.write(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  })
}

/**
 * Sends `count` requests, pipelined on one connection, from this local address. Resolves with the statuses of the
 * responses.
 */
export function askOnOneConnection(url: string, localAddress: string, count: number): Promise<number[]> {
  const { hostname, port } = new URL(url)
  const request = (connection: string) =>
    `GET / HTTP/1.1\r\nHost: ${hostname}\r\nConnection: ${connection}\r\n\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: hostname, localAddress })
    let text = ""
    socket.setEncoding("latin1")
    socket.on("data", (chunk: string) => {
      text += chunk
    })
    socket.once("error", reject)
    socket.once("end", () =>
      resolve([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))),
    )
    socket.write(request("keep-alive").repeat(count - 1) + request("close"))
  })
}

/**
 * Sends `count` requests, pipelined on one connection, and disconnects when `hangUp` resolves, before any response
 * arrives. Resolves when the connection has closed.
 */
export function askAndHangUp(url: string, target: string, hangUp: Promise<void>, count = 1): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    socket.on("error", () => undefined)
    socket.once("close", () => resolve())
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(count))
    void hangUp.then(() => socket.destroy())
  })
}

function joined(headers: NodeJS.Dict<string | string[]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  )
}
