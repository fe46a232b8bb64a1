import { Agent, type IncomingHttpHeaders, request } from "node:http"

/** What came of one request; by `performance.now()`. */
export interface Answer {
  /** Undefined when there was none: nothing within the client's patience, or a broken connection. */
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly sentMs: number
  readonly answeredMs: number
}

export interface Question {
  /** The client's address, as the proxy in front of the app tells it. */
  readonly from: string
  readonly method?: "GET" | "HEAD"
}

/** Asks an app, as the proxy in front of it does for its clients. */
export interface HttpClient {
  ask(question: Question): Promise<Answer>
  close(): void
}

/** More than a drill has in flight where it looks at how long an answer takes. */
const CONNECTIONS = 64

/** A client that waits so long for an answer. It never rejects: no answer is an answer, too. */
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

/** So many requests of one client, all at once. */
export function askAtOnce(client: HttpClient, question: Question, times: number): Promise<Answer[]> {
  return Promise.all(Array.from({ length: times }, () => client.ask(question)))
}

export function countAdmitted(answers: readonly Answer[]): number {
  return answers.filter(isAdmitted).length
}
