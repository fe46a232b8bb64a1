import dns from "node:dns/promises"
import { once } from "node:events"
import { syncBuiltinESMExports } from "node:module"
import { connect, createServer } from "node:net"
import { EmptySchema } from "@bufbuild/protobuf/wkt"
import { afterAll, beforeAll, expect, it } from "vitest"
import { createHttpDoor } from "../../packages/service/src/http/http-door.ts"
import { listenOnEach } from "../../packages/service/src/sockets/listening.ts"
import { freePort } from "../servers/free-port.ts"
import { until } from "../servers/until.ts"

const ADDRESSES = ["127.0.0.1", "127.0.0.2"]

// On most machines, but not on all, localhost has two addresses.
const { lookup } = dns
beforeAll(() => setLookup(async () => ADDRESSES.map((address) => ({ address, family: 4 }))))
afterAll(() => setLookup(lookup))

function setLookup(to: unknown): void {
  dns.lookup = to as typeof dns.lookup
  syncBuiltinESMExports()
}

it("the HTTP port listens on every address, with one limit, and responds to all calls before it closes", async () => {
  let refused = 0
  const answers: (() => void)[] = []
  const call = {
    path: "/test.Service/Call",
    output: EmptySchema,
    answerBytes: () => new Uint8Array(),
    authorize() {},
    answerJson: () => new Promise<string>((resolve) => answers.push(() => resolve("{}"))),
  }
  const door = createHttpDoor(
    [call],
    {
      maxMessageBytes: 1_000,
      maxInFlight: 10,
      arrivalMs: 60_000,
      maxConnections: 2,
      maxConnectionsPerPeer: 2,
    },
    {
      onFault: () => undefined,
      onRefusedConnection: () => void refused++,
      onOverload: () => undefined,
      onWrongToken: () => undefined,
      onInvalidCheck: () => undefined,
      onLateConnection: () => undefined,
      onFailedHandshake: () => undefined,
    },
  )
  const port = await door.listen("a-host", 0)
  const asked = ADDRESSES.map((host) => fetch(`http://${host}:${port}${call.path}`, { method: "POST" }))
  await until("both have come", () => answers.length === 2)
  const more = ADDRESSES.map((host) => connect(port, host).on("error", () => undefined))
  await until("more are refused on each", () => refused === 2)
  let isDrained = false
  const drained = door.drain().then(() => {
    isDrained = true
  })
  answers[0]?.()
  expect((await asked[0])?.status).toBe(200)
  expect(isDrained).toBe(false)
  answers[1]?.()
  const last = await asked[1]
  expect({ status: last?.status, connection: last?.headers.get("connection") }).toEqual({
    status: 200,
    connection: "close",
  })
  await drained
  for (const socket of more) socket.destroy()
})

it("a port that another program uses on one address is not opened on the other addresses", async () => {
  const [free, taken] = ADDRESSES as [string, string]
  const port = await freePort()
  const other = createServer().listen(port, taken)
  await once(other, "listening")
  await expect(listenOnEach("a-host", port, createServer)).rejects.toThrow(
    `EADDRINUSE: address already in use ${taken}`,
  )
  await expect(once(connect(port, free), "connect")).rejects.toThrow("ECONNREFUSED")
  other.close()
})
