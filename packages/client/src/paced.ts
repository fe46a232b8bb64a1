import { attempts } from "./attempts.ts"
import { type PaceEvents, PaceListeners } from "./events.ts"
import type { GateStatus } from "./gate-status.ts"
import { Gates } from "./gates.ts"
import { keyAfterRedirect, keyOf } from "./key.ts"
import { type CallPace, check, type PacedOptions, parseCallPace, parseOptions } from "./options.ts"
import { PaceError } from "./pace-error.ts"
import { type FetchInit, type FetchInput, sendable } from "./sending.ts"

/** A `fetch` that paces itself. Call it like `fetch`, or pass it wherever a `fetch` is expected. */
export interface PacedFetch {
  /**
   * Sends a request once its key has quota for it. Returns the promise of `fetch`, which also rejects with
   * {@link PaceError} if the call was not sent, and with the signal's reason if the call was aborted.
   */
  (
    input: FetchInput,
    init?: FetchInit & {
      /** Options of this call, which override those of the fetch. */
      readonly pace?: CallPace | undefined
    },
  ): Promise<Response>
  /**
   * Adds a listener. Returns a function that removes the listener. An error of a listener becomes an uncaught error.
   * @throws {@link PaceError} with the code SLUICE_INVALID_OPTION
   */
  on<Name extends keyof PaceEvents>(name: Name, listener: (event: PaceEvents[Name]) => void): () => void
  /** Returns the state of each key that has calls, or whose state is still known. */
  status(): readonly GateStatus[]
  /** Rejects waiting calls, and all later calls, with {@link PaceError}. Calls in flight go on. */
  close(): void
}

/**
 * Returns a `fetch` that reads the rate limit headers of each response, and slows down before the server has to
 * refuse a call. After a refusal, all calls of the same key wait for the time that the response contains.
 * @param fetch the fetch that sends the calls. Default: the global one.
 * @throws {@link PaceError} with the code SLUICE_INVALID_OPTION
 * @example
 * ```ts
 * import { paced } from "@sluice/client"
 *
 * const api = paced(fetch, { maxWaitMs: 10_000 })
 * const response = await api(process.env.API_URL ?? "https://api.example.com/orders")
 * ```
 */
export function paced(fetch?: typeof globalThis.fetch, options: PacedOptions = {}): PacedFetch {
  check(fetch === undefined || typeof fetch === "function", "paced", fetch, "a fetch, and then the options")
  const parsed = parseOptions(options)
  const events = new PaceListeners()
  const gates = new Gates({ ...parsed, emit: (name, event) => events.emit(name, event) })
  const closing = new AbortController()
  let calls = 0

  async function call(
    input: FetchInput,
    init?: (FetchInit & { readonly pace?: CallPace | undefined }) | null,
  ): Promise<Response> {
    const { pace = {}, ...rest } = init ?? {}
    const { key: ownKey, maxWaitMs, retries } = parseCallPace(pace, parsed)
    const { head, signals, isResendable, send } = sendable(
      input,
      init && "pace" in init ? rest : (init ?? {}),
    )
    const key = ownKey ?? (parsed.key ?? keyOf)(head)
    // Reject a promise as the key, because each call would get a new gate.
    check(typeof key === "string", "key", key, "a string")
    const gate = gates.of(key)
    const attempted = {
      ...{ gate, head, retries: isResendable ? retries : 0 },
      gateOf(response: Response) {
        const other = keyAfterRedirect(response, head)
        return other === undefined ? gate : gates.of(other)
      },
      call: { order: ++calls, signals: [closing.signal, ...signals], maxWaitMs, waitLeftMs: maxWaitMs },
      send: (isLast: boolean) => send(fetch ?? globalThis.fetch, isLast),
    }
    return attempts(attempted, parsed, events)
  }

  return Object.assign(call, {
    on: events.on.bind(events),
    status: () => gates.status(),
    close() {
      const message = "The paced fetch was closed. Create a new paced fetch."
      closing.abort(new PaceError("SLUICE_PACE_CLOSED", message))
    },
  })
}
