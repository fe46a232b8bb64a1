import { connect } from "node:net"

const GET = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
const HEAD_END = "\r\n\r\n"

/**
 * Sends a number of requests over keep-alive connections, with one request at a time on each. Rejects unless every
 * response has status 200. Used to measure CPU time per request, because wrk can only run for a given time.
 */
export async function sendRequests(
  port: number,
  connections: number,
  requests: number,
  request: string = GET,
): Promise<void> {
  let left = requests
  const takeOne = (): boolean => left-- > 0
  await Promise.all(Array.from({ length: connections }, () => useConnection(port, takeOne, request)))
}

function useConnection(port: number, takeOne: () => boolean, request: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true })
    let received = ""
    let isDone = false
    const sendNext = (): void => {
      isDone = !takeOne()
      if (isDone) socket.end()
      else socket.write(request)
    }
    socket.setEncoding("latin1")
    socket.on("connect", sendNext)
    socket.on("data", (chunk: string) => {
      received += chunk
      if (!isComplete(received)) return
      if (!received.startsWith("HTTP/1.1 200 ")) {
        const [status] = received.split("\r\n")
        socket.destroy(new Error(`The server responded with ${status}; expected HTTP/1.1 200.`))
        return
      }
      received = ""
      sendNext()
    })
    socket.on("error", reject)
    socket.on("close", () => {
      if (isDone) resolve()
      else reject(new Error("The server closed a connection before it responded."))
    })
  })
}

/** Whether the text is a complete response. Throws if Content-Length is missing. */
export function isComplete(text: string): boolean {
  const headEnd = text.indexOf(HEAD_END)
  if (headEnd < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, headEnd))?.[1]
  if (length === undefined) throw new Error(`The response has no Content-Length: ${text.slice(0, headEnd)}`)
  return text.length >= headEnd + HEAD_END.length + Number(length)
}
