import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it, vi } from "vitest"
import type { Io } from "./io.ts"
import { callService } from "./service-call.ts"

let server: Server | undefined
afterEach(() => {
  vi.restoreAllMocks()
  server?.close()
})

/** Starts a service that responds to every call with this status and body. Returns its URL. */
async function answering(status: number, body: string): Promise<string> {
  server = createServer((_request, response) => void response.writeHead(status).end(body))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const call = (url: string) => callService(url, "ShowClient", {}, { env: {} } as unknown as Io)

it("callService resolves to the response", async () => {
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
  [200, "<html>", "its response is not from the decision service"],
  [405, '{"status":"only GET"}', "HTTP address, not its gRPC address or operations port."],
  [
    404,
    '{"code":"not_found","message":"Service \\"a\\" is not registered."}',
    'Service "a" is not registered.',
  ],
])("callService rejects a response with status %d and %j", async (status, body, says) => {
  await expect(call(await answering(status, body))).rejects.toThrow(says)
})

it.each(["localhost:8080", "nowhere", "ftp://host"])(
  "callService throws for %j, which is not an HTTP URL",
  async (url) => {
    await expect(call(url)).rejects.toThrow("is not an HTTP URL: give one such as http://127.0.0.1:8080")
  },
)

it("callService calls the default address if no URL is given", async () => {
  const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("{}"))
  for (const SLUICE_URL of [undefined, ""]) {
    await callService(undefined, "ShowClient", {}, { env: { SLUICE_URL } } as unknown as Io)
  }
  const url = "http://127.0.0.1:8080/sluice.v1.RateLimiter/ShowClient"
  expect(fetched.mock.calls.map(([target]) => String(target))).toEqual([url, url])
})

// For a host with several addresses, Node's error has no message.
it.each<[what: string, cause: unknown, says: string]>([
  [
    "an error about several addresses",
    Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }),
    "did not respond: ECONNREFUSED.",
  ],
  ["an error whose cause has no message and no code", new Error(), "did not respond: fetch failed."],
  ["an error without a cause", undefined, "did not respond: fetch failed."],
])("callService reports why a call failed if the failure is %s", async (_what, cause, says) => {
  vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("fetch failed", { cause }))
  await expect(call("http://127.0.0.1:1")).rejects.toThrow(says)
})

it("callService reports that a service took too long to respond", async () => {
  server = createServer(() => undefined).listen(0, "127.0.0.1")
  await once(server, "listening")
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms / 1_000))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await expect(call(url)).rejects.toThrow("did not respond: it took longer than 10 seconds. Check --url")
  server.closeAllConnections()
})

it("callService reports which service did not respond, and why", async () => {
  const url = await answering(200, "{}")
  server?.close()
  await expect(call(url)).rejects.toThrow(
    /The decision service at "http.*" did not respond: .*ECONNREFUSED.*--url/,
  )
})
