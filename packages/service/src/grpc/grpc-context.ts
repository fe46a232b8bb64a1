import type { ServerUnaryCall } from "@grpc/grpc-js"
import { type Asking, bearerToken, type CallContext } from "../calls.ts"

/** What a handler may want to know of a call over gRPC; read when it does. */
export class GrpcContext implements CallContext, Asking {
  readonly #call: ServerUnaryCall<unknown, unknown>

  constructor(call: ServerUnaryCall<unknown, unknown>) {
    this.#call = call
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

  /** Whether the caller has hung up, or its deadline has passed. */
  get closed(): boolean {
    return this.#call.cancelled
  }

  once(_event: "close", listener: () => void): void {
    // One caller may wait for as many requests as it has put into a call.
    this.#call.setMaxListeners(0)
    this.#call.once("cancelled", listener)
  }

  off(_event: "close", listener: () => void): void {
    this.#call.off("cancelled", listener)
  }
}
