import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it } from "vitest"
import type { Io } from "./io.ts"
import { callService } from "./service-call.ts"

let server: Server | undefined
afterEach(() => server?.close())

/** A service that answers every call with this status and body; resolves to its URL. */
async function answering(status: number, body: string): Promise<string> {
  server = createServer((_request, response) => void response.writeHead(status).end(body))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const call = (url: string) => callService(url, "ShowClient", {}, { env: {} } as unknown as Io)

it("resolves to the answer", async () => {
  await expect(call(await answering(200, '{"limit":"5"}'))).resolves.toEqual({ limit: "5" })
})

it.each<[status: number, body: string, says: string]>([
  [403, '{"message":"Wrong token."}', "Wrong token. Set SLUICE_TOKEN to the token of this service."],
  [
    400,
    '{"message":"bad","details":[{"debug":{"fieldViolations":[{"field":"client","description":"has 0 values"}]}},{}]}',
    "client has 0 values",
  ],
  [503, "{}", "status 503"],
  [200, "<html>", "not as the decision service does"],
])("rejects an answer with status %d and %j", async (status, body, says) => {
  await expect(call(await answering(status, body))).rejects.toThrow(says)
})

it.each(["localhost:8080", "nowhere", "ftp://host"])(
  "throws for %j, which is not a URL of HTTP",
  async (url) => {
    await expect(call(url)).rejects.toThrow("is not an HTTP URL: give one such as http://127.0.0.1:8080")
  },
)

it("says which service gave no answer, and why", async () => {
  const url = await answering(200, "{}")
  server?.close()
  await expect(call(url)).rejects.toThrow(
    /The decision service at "http.*" gave no answer: .*ECONNREFUSED.*--url/,
  )
})
