import type { Clock } from "@sluice/core"
import { after, outsideRequests, steadyClock } from "@sluice/core/kit"

/** For how long equal calls get the same response. */
const KEPT_MS = 100

/** Gives equal calls of a short time the same response, so that many callers cause no more work than one. */
export class KeptResponses<Response> {
  readonly #clock: Clock | undefined
  readonly #kept = new Map<string, Promise<Response>>()

  /** With a clock for tests, only calls at the same time get the same response. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock
  }

  /** Returns the response to a call. Calls are equal if they have the same JSON. */
  of(call: readonly unknown[], respond: () => Promise<Response>): Promise<Response> {
    const key = JSON.stringify(call)
    const forget = (): void => void this.#kept.delete(key)
    let kept = this.#kept.get(key)
    if (kept === undefined) {
      kept = respond().finally(() => {
        if (this.#clock !== undefined) forget()
        else outsideRequests(() => after(KEPT_MS, steadyClock, forget))
      })
      this.#kept.set(key, kept)
    }
    return kept
  }
}
