import { Metadata, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js"
import { CallPlaces, type InFlight } from "../bounds/in-flight.ts"
import { addressOf } from "../bounds/peers.ts"
import { type Asking, bearerToken } from "../calls.ts"
import { Code, OverloadError, type StatusError } from "../status-error.ts"
import { statusBytes } from "../wire/status-message.ts"
import type { AskedCall } from "./answering.ts"

/** A call that @grpc/grpc-js reads and responds to. */
export class LibraryCall implements AskedCall, Asking {
  readonly #call: ServerUnaryCall<Uint8Array, Uint8Array>
  readonly #done: sendUnaryData<Uint8Array>

  readonly reader = "grpc-js"
  readonly places: CallPlaces

  constructor(
    call: ServerUnaryCall<Uint8Array, Uint8Array>,
    done: sendUnaryData<Uint8Array>,
    inFlight: InFlight,
  ) {
    this.#call = call
    this.#done = done
    this.places = new CallPlaces(inFlight, inFlight.peerOf(addressOf(call.getPeer())))
  }

  get request(): Uint8Array {
    return this.#call.request
  }

  get asking(): Asking {
    return this
  }

  get token(): string | undefined {
    const [value] = this.#call.metadata.get("authorization")
    return bearerToken(value?.toString())
  }

  get peer(): string {
    return this.#call.getPeer()
  }

  /** Whether the caller has disconnected or its deadline has passed. */
  get closed(): boolean {
    return this.#call.cancelled
  }

  get endedWith(): Code | undefined {
    if (!this.#call.cancelled) return undefined
    // Allow one millisecond, because a timer may fire a millisecond early.
    return Number(this.#call.getDeadline()) <= Date.now() + 1 ? Code.DEADLINE_EXCEEDED : Code.CANCELLED
  }

  once(_event: "close", listener: () => void): void {
    // Remove the limit for listeners, because one call may wait for many requests, and each adds a listener.
    this.#call.setMaxListeners(0)
    this.#call.once("cancelled", listener)
  }

  off(_event: "close", listener: () => void): void {
    this.#call.off("cancelled", listener)
  }

  answer(bytes: Uint8Array): void {
    this.#done(null, bytes)
  }

  fail(error: StatusError): void {
    const metadata = new Metadata()
    metadata.set("grpc-status-details-bin", statusBytes(error))
    if (error instanceof OverloadError) metadata.set("grpc-retry-pushback-ms", String(error.retryAfterMs))
    const { name, message, code } = error
    this.#done({ name, message, code, details: message, metadata })
  }
}
