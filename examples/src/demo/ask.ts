import { Agent, request } from "node:http"

/** A response as it was sent over the wire. */
export interface Answer {
  readonly status: number
  /** The status line, such as "HTTP/1.1 429 Too Many Requests". */
  readonly statusLine: string
  /** Header fields in the spelling and order of the server. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

const TIMEOUT_MS = 5_000
const agent = new Agent({ keepAlive: true })

/**
 * Sends a GET for a client, and resolves to the response. The program acts as a proxy, so it sends the client's
 * address in X-Forwarded-For.
 */
export function ask(url: string, client: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { "x-forwarded-for": client }
    const asking = request(url, { agent, headers, timeout: TIMEOUT_MS }, (response) => {
      const { httpVersion, statusCode = 0, statusMessage = "", rawHeaders } = response
      let body = ""
      response
        .setEncoding("utf8")
        .on("data", (text: string) => {
          body += text
        })
        .on("error", reject)
        .on("end", () => {
          const statusLine = `HTTP/${httpVersion} ${statusCode} ${statusMessage}`
          resolve({ status: statusCode, statusLine, headers: pairs(rawHeaders), body })
        })
    })
    asking.on("timeout", () => asking.destroy(new Error(`${url} did not respond in ${TIMEOUT_MS} ms`)))
    asking.on("error", reject).end()
  })
}

/** Returns the value of a header. `name` is in lower case. */
export function header({ headers }: Answer, name: string): string | undefined {
  return headers.find(([one]) => one.toLowerCase() === name)?.[1]
}

/** Returns pairs of names and values from Node's flat list. */
function pairs(raw: readonly string[]): [name: string, value: string][] {
  const found: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] ?? "", raw[at + 1] ?? ""])
  return found
}
