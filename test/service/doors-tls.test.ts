import { once } from "node:events"
import { readFileSync } from "node:fs"
import { request } from "node:https"
import { connect } from "node:net"
import { expect, it } from "vitest"
import { createReadiness } from "../../packages/service/src/program/readiness.ts"
import { cannotListen } from "../../packages/service/src/sockets/listening.ts"
import { until } from "../servers/until.ts"
import { openService, TWO_SERVICES } from "./started.ts"

const file = (name: string): Buffer => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url))
const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"

/** Resolves with the status of a POST over TLS, or with the error code if the handshake fails. */
function post(url: string, client: object): Promise<number | string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const options = {
      hostname,
      port,
      path: PATH,
      method: "POST",
      ca: file("ca.pem"),
      servername: "localhost",
    }
    const headers = { "content-type": "application/json" }
    const asked = request({ ...options, headers, agent: false, ...client }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode ?? 0))
    })
    asked.once("error", (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    asked.end('{"serviceId":2}')
  })
}

it("gRPC and HTTP report why a TLS handshake failed, but do not report connection checks", async () => {
  const told: string[] = []
  const tls = { cert: file("server.pem"), key: file("server.key"), clientCa: file("ca.pem") }
  const onFailedHandshake = (reason: string) => void told.push(reason)
  const started = await openService(TWO_SERVICES, { tls, onFailedHandshake })
  const doors = [
    [started.http, "http/1.1"],
    [`http://${started.grpc}`, "h2"],
  ] as const
  for (const [door, protocol] of doors) {
    const ALPNProtocols = [protocol]
    const { hostname, port } = new URL(door)
    const looking = connect(Number(port), hostname)
    await once(looking, "connect")
    looking.end()
    await once(looking, "close")
    await fetch(door).catch(() => undefined)
    await post(door, { ALPNProtocols })
    await post(door, { ALPNProtocols, cert: file("stranger.pem"), key: file("stranger.key") })
  }
  const reasons = [
    "ERR_SSL_HTTP_REQUEST",
    "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
  ]
  await until("all are told", () => told.length === reasons.length * doors.length)
  expect(told).toEqual([...reasons, ...reasons])
})

it("a server that cannot listen is reported with its name and its address", () => {
  const fail = () => cannotListen("gRPC", "a:1")(new Error("no such address"))
  expect(fail).toThrow("gRPC cannot listen on a:1: no such address")
})

it("readiness reports each phase once, and no phase after draining", () => {
  const told: string[] = []
  const readiness = createReadiness((phase) => told.push(phase))
  readiness.rulesLoaded()
  readiness.rulesLoaded()
  readiness.drain()
  readiness.drain()
  readiness.rulesLoaded()
  expect(told).toEqual(["ready", "draining"])
  expect(readiness.phase).toBe("draining")
})
