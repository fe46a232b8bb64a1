import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it } from "vitest"
import { isComplete, sendRequests } from "./requests.ts"

let stop: (() => void) | undefined
afterEach(() => stop?.())

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, "127.0.0.1")
  stop = () => server.close()
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

it("sendRequests sends the requested number of requests over any number of connections", async () => {
  let requests = 0
  const port = await serve((_request, response) => {
    requests++
    response.end("hello")
  })
  await sendRequests(port, 7, 100)
  expect(requests).toBe(100)
})

it("sendRequests reads responses that arrive in parts", async () => {
  const port = await serve((_request, response) => {
    response.setHeader("content-length", 4)
    response.write("ab")
    setImmediate(() => response.end("cd"))
  })
  await sendRequests(port, 3, 9)
})

it("sendRequests rejects when a request is refused", async () => {
  const port = await serve((_request, response) => {
    response.statusCode = 429
    response.end("no")
  })
  await expect(sendRequests(port, 2, 10)).rejects.toThrow("responded with HTTP/1.1 429")
})

it("sendRequests rejects when the server closes a connection instead of responding", async () => {
  const port = await serve((request) => request.socket.destroy())
  await expect(sendRequests(port, 1, 10)).rejects.toThrow(/closed a connection|ECONNRESET/)
})

it.each([
  ["HTTP/1.1 200 OK\r\nContent-Le", false],
  ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", false],
  ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", true],
  ["HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", true],
])("isComplete(%j) returns %s", (text, complete) => {
  expect(isComplete(text)).toBe(complete)
})

it("isComplete throws if a response has no Content-Length", () => {
  expect(() => isComplete("HTTP/1.1 200 OK\r\n\r\n")).toThrow("has no Content-Length")
})
