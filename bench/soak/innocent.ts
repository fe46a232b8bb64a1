import { request } from "node:https"
import { setTimeout as pause } from "node:timers/promises"
import { fromBinary } from "@bufbuild/protobuf"
import { ShouldForwardRequestResponseSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { beginCall, framed, HOST, openSession, SINGLE, single, type Target, TRUST } from "./target.ts"

/** The service for which the innocent caller requests decisions. */
export const SHOP = "shop"
const PER_SECOND = 200
const TURN_MS = 10
const PATIENCE_MS = 10_000
const FROM = "127.0.0.1"

/** The outcome of the calls. */
export interface Heard {
  readonly tookMs: number[]
  /** The number of failed calls by reason. */
  readonly failed: Map<string, number>
}

/** A caller that makes 200 calls per second, half over gRPC and half over HTTP, on persistent connections. */
export class Innocent {
  readonly #target: Target
  #session

  constructor(target: Target) {
    this.#target = target
    this.#session = openSession(target, FROM)
  }

  /** Makes calls for this time, and resolves when every call has ended. */
  async ask(ms: number): Promise<Heard> {
    const heard: Heard = { tookMs: [], failed: new Map() }
    const startMs = performance.now()
    const calls: Promise<void>[] = []
    for (let sent = 0; performance.now() - startMs < ms; ) {
      for (; sent < ((performance.now() - startMs) / 1_000) * PER_SECOND; sent++) {
        calls.push(this.#call(sent, heard))
      }
      await pause(TURN_MS)
    }
    await Promise.all(calls)
    return heard
  }

  close(): void {
    this.#session.destroy()
  }

  async #call(index: number, heard: Heard): Promise<void> {
    const startMs = performance.now()
    const user = `user-${index % 1_000}`
    const late = new AbortController()
    const said = index % 2 === 0 ? this.#byGrpc(user) : this.#byHttp(user)
    const reason = await Promise.race([
      said.catch((error: Error) => error.message),
      pause(PATIENCE_MS, `no response within ${PATIENCE_MS} ms`, { signal: late.signal, ref: false }).catch(
        () => "",
      ),
    ])
    late.abort()
    heard.tookMs.push(performance.now() - startMs)
    if (reason !== "") heard.failed.set(reason, (heard.failed.get(reason) ?? 0) + 1)
  }

  /** Resolves to the reason for the failure of the call, or to "" if the call succeeded. */
  #byGrpc(user: string): Promise<string> {
    if (this.#session.closed || this.#session.destroyed) this.#session = openSession(this.#target, FROM)
    const stream = beginCall(this.#session, SINGLE)
    let status = "none"
    const chunks: Buffer[] = []
    const read = (headers: object): void => {
      status = String((headers as Record<string, unknown>)["grpc-status"] ?? status)
    }
    stream.on("response", read).on("trailers", read)
    stream.on("data", (chunk: Buffer) => chunks.push(chunk))
    stream.end(framed(single(SHOP, user)))
    return new Promise((resolve) => {
      stream.once("close", () => {
        if (status !== "0") return resolve(`gRPC: status ${status}`)
        const message = fromBinary(ShouldForwardRequestResponseSchema, Buffer.concat(chunks).subarray(5))
        resolve(message.shouldForward && !message.degraded ? "" : "gRPC: not forwarded")
      })
    })
  }

  #byHttp(user: string): Promise<string> {
    const body = JSON.stringify({ service: SHOP, request: { user } })
    const options = { host: HOST, port: this.#target.httpPort, path: SINGLE, method: "POST", ...TRUST }
    return new Promise((resolve) => {
      const asking = request({ ...options, headers: { "content-type": "application/json" } }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => {
          text += chunk
        })
        response.on("end", () => {
          if (response.statusCode !== 200) return resolve(`HTTP: status ${response.statusCode}`)
          resolve(JSON.parse(text).shouldForward === true ? "" : "HTTP: not forwarded")
        })
      })
      asking.on("error", (error) => resolve(`HTTP: ${error.message}`))
      asking.end(body)
    })
  }
}
