import { type ClosingResponse, FetchFacts } from "@sluice/core/adapters"
import type { AppFunctions, FrameworkFacts } from "./app-functions.ts"

/**
 * A request as the guard reads it: its facts, and whether its client has hung up. Each value is read only when the
 * guard needs it.
 */
export class Incoming<Context> extends FetchFacts implements ClosingResponse {
  readonly #request: Request
  readonly #context: Context
  readonly #read: AppFunctions<Context>
  #known: FrameworkFacts | undefined

  /** Creates the facts. The functions in `read` must not throw. */
  constructor(request: Request, context: Context, read: AppFunctions<Context>) {
    super(request)
    this.#request = request
    this.#context = context
    this.#read = read
  }

  override get remoteAddress(): string | undefined {
    return this.#read.clientAddress(this.#request, this.#context)
  }

  override get routedUrl(): string | undefined {
    return this.#facts.routedUrl
  }

  override get route(): string | undefined {
    return this.#facts.route
  }

  override get params(): unknown {
    return this.#facts.params ?? super.params
  }

  override get body(): unknown {
    return this.#facts.body ?? super.body
  }

  /** True if the client has hung up. */
  get closed(): boolean {
    return this.#request.signal.aborted
  }

  once(_event: "close", listener: () => void): void {
    this.#request.signal.addEventListener("abort", listener, { once: true })
  }

  off(_event: "close", listener: () => void): void {
    this.#request.signal.removeEventListener("abort", listener)
  }

  /** Calls `listener` when the client hangs up, or immediately if it has hung up. */
  onClose(listener: () => void): void {
    if (this.closed) listener()
    else this.once("close", listener)
  }

  get #facts(): FrameworkFacts {
    this.#known ??= this.#read.facts(this.#request, this.#context)
    return this.#known
  }
}
