/** What is answered of a service that nobody has registered. */
export type UnknownServices = "forward" | "refuse"

/** What a client may be answered whose request is refused. */
export interface UnregisteredRefusal {
  readonly status: 403
  readonly contentType: string
  /** A problem (RFC 9457). */
  readonly body: string
}

/** Requests to services without rules, whichever protocol they are asked about in. */
export class Unregistered {
  readonly #answer: UnknownServices
  readonly #onUnknown: () => void

  /** `onUnknown` is told of every such request. */
  constructor(answer: UnknownServices, onUnknown: () => void) {
    this.#answer = answer
    this.#onUnknown = onUnknown
  }

  /** The refusal of a request to such a service; undefined where it is to be forwarded. */
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
