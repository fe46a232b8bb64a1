import type { OutgoingHttpHeaders, ServerResponse } from "node:http"
import type { Reply } from "./plan.ts"

/** Node's own response, for HTTP/1 or HTTP/2. */
interface Answering {
  writeHead(status: number, headers?: OutgoingHttpHeaders): unknown
  flushHeaders(): void
  end(body: string): unknown
}

/** Sends the status immediately, and the body in a later turn. */
export function sendInParts(response: Answering, status: number, body: string): void {
  response.writeHead(status, { "X-Own": "yes" })
  response.flushHeaders()
  setImmediate(() => response.end(body))
}

/** Sends the status and the body, and does not end the response. */
export function begin(response: ServerResponse, { status = 200, body = "" }: Reply): void {
  response.writeHead(status)
  response.write(body)
}
