import { Agent, request } from "node:http"

/** An answer as it came over the wire. */
export interface Answer {
  readonly status: number
  /** "HTTP/1.1 429 Too Many Requests" */
  readonly statusLine: string
  /** Names as the server wrote them, in its order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

const TIMEOUT_MS = 5_000
const agent = new Agent({ keepAlive: true })

/** The answer to a GET by a client behind the proxy that this program plays: it says whom it asks for. */
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
    asking.on("timeout", () => asking.destroy(new Error(`${url} did not answer in ${TIMEOUT_MS} ms`)))
    asking.on("error", reject).end()
  })
}

/** The value of a header, by its name in any case. */
export function header({ headers }: Answer, name: string): string | undefined {
  return headers.find(([one]) => one.toLowerCase() === name)?.[1]
}

/** Node gives names and values in turn. */
function pairs(raw: readonly string[]): [name: string, value: string][] {
  const found: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] ?? "", raw[at + 1] ?? ""])
  return found
}
