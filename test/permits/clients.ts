import type { EventEmitter } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { connect, constants } from "node:http2"
import { onTestFinished } from "vitest"

/** A request that a client has sent. */
export interface Call {
  /** The status of the response. Undefined if the connection closed before it. */
  readonly status: Promise<number | undefined>
  /** Reads the rest of the body. Resolves when the response has ended or failed. */
  read(): Promise<void>
  /** Hangs up: closes the connection or, over HTTP/2, cancels the request. */
  hangUp(): void
}

/** A client of one server. It does not read a body before `read` is called. */
export type Client = (method: string, path: string) => Call

/** Returns a client that uses a separate connection for each request. */
export function http1Client(url: string): Client {
  return (method, path) => {
    const sent = request(url + path, { method, agent: false, headers: { Connection: "keep-alive" } })
    sent.on("error", () => undefined).end()
    const response = new Promise<IncomingMessage | undefined>((resolve) => {
      sent.once("response", resolve).once("close", () => resolve(undefined))
    })
    return {
      status: response.then((received) => received?.statusCode),
      async read() {
        const received = (await response)?.on("error", () => undefined).resume()
        if (received !== undefined && !received.closed) await closing(received)
      },
      hangUp: () => void sent.destroy(),
    }
  }
}

/** Returns a client that sends all requests over one connection, which closes when the current test ends. */
export function http2Client(url: string): Client {
  const session = connect(url).on("error", () => undefined)
  onTestFinished(() => session.destroy())
  return (method, path) => {
    const stream = session.request({ ":method": method, ":path": path }).on("error", () => undefined)
    const closed = closing(stream)
    return {
      status: new Promise((resolve) => {
        stream
          .once("response", (headers) => resolve(headers[":status"]))
          .once("close", () => resolve(undefined))
      }),
      async read() {
        stream.resume()
        await closed
      },
      hangUp: () => stream.close(constants.NGHTTP2_CANCEL),
    }
  }
}

function closing(emitter: EventEmitter): Promise<void> {
  return new Promise((resolve) => emitter.once("close", resolve))
}
