import { Agent, type IncomingHttpHeaders, request } from "node:http"

/** The outcome of one request. Times are from `performance.now()`. */
export interface Answer {
  /** The status is undefined if a timeout or a broken connection prevented the response. */
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly sentMs: number
  readonly answeredMs: number
}

export interface Question {
  /** The client's address, which the proxy in front of the app forwards. */
  readonly from: string
  readonly method?: "GET" | "HEAD"
}

/** An HTTP client that sends requests to an app, as the proxy in front of the app does for its clients. */
export interface HttpClient {
  ask(question: Question): Promise<Answer>
  close(): void
}

/** There are more connections than requests in flight in any drill that measures response times. */
const CONNECTIONS = 64

/**
 * Creates a client with a timeout of `patienceMs`. `ask` never rejects. Without a response, it resolves to a result
 * without a status.
 */
export function openClient(port: number, patienceMs: number): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  return {
    ask({ from, method = "GET" }) {
      return new Promise((resolve) => {
        const sentMs = performance.now()
        const finish = (status: number | undefined, headers: IncomingHttpHeaders) => {
          clearTimeout(timer)
          resolve({ status, headers, sentMs, answeredMs: performance.now() })
        }
        const outgoing = request(
          { agent, host: "127.0.0.1", port, path: "/", method, headers: { "x-forwarded-for": from } },
          (incoming) => {
            incoming.resume()
            incoming.once("end", () => finish(incoming.statusCode, incoming.headers))
            incoming.once("error", () => finish(undefined, {}))
          },
        )
        outgoing.once("error", () => finish(undefined, {}))
        const timer = setTimeout(() => outgoing.destroy(), patienceMs)
        outgoing.end()
      })
    },
    close: () => agent.destroy(),
  }
}

export function isAdmitted({ status }: Answer): boolean {
  return status === 200
}

export function isRefused({ status }: Answer): boolean {
  return status === 429
}

/** Sends `times` requests of one client at the same time. */
export function askAtOnce(client: HttpClient, question: Question, times: number): Promise<Answer[]> {
  return Promise.all(Array.from({ length: times }, () => client.ask(question)))
}

export function countAdmitted(answers: readonly Answer[]): number {
  return answers.filter(isAdmitted).length
}
