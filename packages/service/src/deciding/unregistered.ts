/** The decision for requests to services that are not registered. */
export type UnknownServices = "forward" | "refuse"

/** A response for a client whose request is refused. */
export interface UnregisteredRefusal {
  readonly status: 403
  readonly contentType: string
  /** A problem details object (RFC 9457). */
  readonly body: string
}

/** Decides requests to services without rules, for every protocol. */
export class Unregistered {
  readonly #answer: UnknownServices
  readonly #onUnknown: () => void

  /** `onUnknown` is called for every request to a service without rules. */
  constructor(answer: UnknownServices, onUnknown: () => void) {
    this.#answer = answer
    this.#onUnknown = onUnknown
  }

  /** Returns the refusal of a request to a service without rules, or undefined if the request may be forwarded. */
  refusal(service: string): UnregisteredRefusal | undefined {
    this.#onUnknown()
    if (this.#answer === "forward") return undefined
    const detail = `Service ${JSON.stringify(service)} is not registered.`
    return {
      status: 403,
      contentType: "application/problem+json",
      body: JSON.stringify({ title: "Forbidden", status: 403, detail }),
    }
  }
}
