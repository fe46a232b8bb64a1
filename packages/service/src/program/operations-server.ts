import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Dashboard } from "@sluice/dashboard"
import type { ListenAddress } from "../sockets/listening.ts"
import type { Metrics } from "./metrics.ts"

/** The body of a /readyz response. */
export interface ReadyReport {
  readonly status: "starting" | "ready" | "draining"
  readonly rules: "loading" | "loaded"
  /**
   * "degraded" if the shared store does not respond. The service is still ready, because otherwise an outage of Redis
   * would become an outage of everything.
   */
  readonly store: { readonly kind: string; readonly status: "reachable" | "degraded" }
}

/** The server with the endpoints for operators. The server has a separate port, so that callers cannot reach it. */
export interface OperationsServer {
  /** Starts listening. Resolves with the port. */
  listen(address: ListenAddress): Promise<number>
  close(): Promise<void>
}

/** The path of the dashboard. */
export const PAGE = "/limits"
/** Milliseconds that a request may take to arrive. */
const ARRIVAL_MS = 5_000
/** The message for a caller that sends a decision or a registration to this port. */
const NO_CALLS = "This is the operations port. Send calls to the HTTP port of the decision service."

/**
 * Creates the operations server. /livez responds while the process runs. /readyz responds with 200 if clients should
 * send requests to this instance, and otherwise with 503. /metrics responds with the metrics. `page` is the dashboard.
 */
export function createOperationsServer(
  report: () => Promise<ReadyReport>,
  metrics: Pick<Metrics, "read">,
  page?: Dashboard,
): OperationsServer {
  const paths = ["/livez", "/readyz", "/metrics", ...(page === undefined ? [] : [`${PAGE}/`])]
  const answer = async (path: string, response: ServerResponse): Promise<void> => {
    if (path === "/livez") return send(response, 200, { status: "alive" })
    if (path === "/readyz") {
      const ready = await report()
      return send(response, ready.status === "ready" ? 200 : 503, ready)
    }
    if (path === "/metrics") {
      const { contentType, text } = await metrics.read()
      response.writeHead(200, { "content-type": contentType }).end(text)
      return
    }
    send(response, 404, { status: "not found", message: NO_CALLS, paths })
  }
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    const isRead = request.method === "GET" || request.method === "HEAD"
    const [path = ""] = (request.url ?? "").split("?")
    if (isRead) answer(path, response).catch(() => send(response, 500, { status: "failed" }))
    else send(response.setHeader("allow", "GET, HEAD"), 405, { status: "only GET", message: NO_CALLS })
  }
  const server = createServer(
    { requestTimeout: ARRIVAL_MS, headersTimeout: ARRIVAL_MS },
    (request, response) => {
      if (page === undefined) respond(request, response)
      else page(request, response, () => respond(request, response))
    },
  )
  return {
    listen: ({ host, port }) =>
      new Promise((resolve, reject) => {
        server.once("error", reject).listen(port, host, () => {
          server.off("error", reject)
          resolve((server.address() as AddressInfo).port)
        })
      }),
    close: () =>
      new Promise((resolve) => {
        page?.close()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  const headers = { "content-type": "application/json", "cache-control": "no-store" }
  response.writeHead(status, headers).end(`${JSON.stringify(body)}\n`)
}
