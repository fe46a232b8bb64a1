import type { InvalidOptionError } from "@sluice/core"
import { type ClosingResponse, FetchFacts } from "@sluice/core/adapters"
import { ADDRESS, type AppFunctions, type FrameworkFacts, faultOf } from "./app-functions.ts"

/**
 * A request as the guard reads it: its facts, and whether its client has hung up. Each value is read only when the
 * guard needs it.
 */
export class Incoming<Subject> extends FetchFacts implements ClosingResponse {
  readonly request: Request
  /** The object that the app's functions receive. */
  readonly subject: Subject
  /** The reason why the framework cannot provide the client's address. */
  fault: InvalidOptionError | undefined
  readonly #read: AppFunctions<Subject>
  #known: FrameworkFacts | undefined

  /** Reads nothing yet. */
  constructor(request: Request, subject: Subject, read: AppFunctions<Subject>) {
    super(request)
    this.request = request
    this.subject = subject
    this.#read = read
  }

  override get remoteAddress(): string | undefined {
    try {
      return this.#read.clientAddress(this.subject)
    } catch (error) {
      this.fault = faultOf(ADDRESS, `is missing, and the address of the client is not known: ${error}`)
      return undefined
    }
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
    return this.request.signal.aborted
  }

  once(_event: "close", listener: () => void): void {
    this.request.signal.addEventListener("abort", listener, { once: true })
  }

  off(_event: "close", listener: () => void): void {
    this.request.signal.removeEventListener("abort", listener)
  }

  /** Calls `listener` when the client hangs up, or immediately if it has hung up. */
  onClose(listener: () => void): void {
    if (this.closed) listener()
    else this.once("close", listener)
  }

  get #facts(): FrameworkFacts {
    this.#known ??= this.#read.facts(this.subject)
    return this.#known
  }
}
