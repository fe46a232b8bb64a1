import { readFileSync } from "node:fs"
import { request } from "node:https"
import { fileURLToPath } from "node:url"
import { Client, credentials, type ServiceError } from "@grpc/grpc-js"
import { afterEach, describe, expect, it } from "vitest"
import { type RunningHere, startHere } from "./in-process.ts"
import { rulesFile } from "./rules-file.ts"

const pathOf = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const pem = (name: string): Buffer => readFileSync(pathOf(name))
const SERVER = ["--tls-cert", pathOf("server.pem"), "--tls-key", pathOf("server.key")]
const CLIENTS = ["--tls-client-ca", pathOf("ca.pem")]

const rules = rulesFile("service_id: 1\nrules: { name: all, limit: 100, window: 1 day }\n")
let program: RunningHere | undefined
afterEach(() => program?.stop())

/** Resolves with the HTTP status, or with the error. `who` selects a client certificate of the fixtures. */
function overHttp({ http }: RunningHere, who?: string): Promise<number | Error> {
  return new Promise((resolve) => {
    const own = who === undefined ? {} : { cert: pem(`${who}.pem`), key: pem(`${who}.key`) }
    const headers = { "content-type": "application/json" }
    const options = {
      method: "POST",
      headers,
      ca: pem("ca.pem"),
      agent: false,
      servername: "localhost",
      ...own,
    } as const
    request(`${http}/sluice.v1.RateLimiter/ShouldForwardRequest`, options, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .once("error", resolve)
      .end('{"serviceId":1}')
  })
}

/** Resolves with 0 for a successful gRPC call, or with the code of the error. */
function overGrpc({ grpc }: RunningHere, who?: string): Promise<number> {
  const own = who === undefined ? [] : [pem(`${who}.key`), pem(`${who}.pem`)]
  const client = new Client(grpc, credentials.createSsl(pem("ca.pem"), ...own), {
    "grpc.ssl_target_name_override": "localhost",
  })
  const asIs = (bytes: Buffer): Buffer => bytes
  // service_id = 1
  const asked = Buffer.from([0x08, 0x01])
  return new Promise((resolve) => {
    const path = "/sluice.v1.RateLimiter/ShouldForwardRequest"
    client.makeUnaryRequest(path, asIs, asIs, asked, (error: ServiceError | null) => {
      client.close()
      resolve(error?.code ?? 0)
    })
  })
}

describe("TLS", () => {
  it("is used for gRPC and HTTP with the given certificate", async () => {
    program = await startHere(["--rules", rules, ...SERVER])
    await program.said("The service is ready.")
    expect(await overHttp(program)).toBe(200)
    expect(await overGrpc(program)).toBe(0)
    const plain = program.http.replace("https", "http")
    await expect(fetch(plain)).rejects.toThrow()
    expect((await program.readyz()).status).toBe(200)
  })

  it("can require a certificate from callers, and refuses callers without a valid certificate", async () => {
    program = await startHere(["--rules", rules, ...SERVER, ...CLIENTS])
    await program.said("The service is ready.")
    expect(await overHttp(program, "client")).toBe(200)
    expect(await overGrpc(program, "client")).toBe(0)
    for (const who of [undefined, "stranger"]) {
      expect(await overHttp(program, who)).toBeInstanceOf(Error)
      expect(await overGrpc(program, who)).toBe(14)
    }
  })
})
