import { mustBe, requireNone, requireValue } from "./option-checks.ts"
import { show } from "./show.ts"

/** The options of a call that can be aborted. */
export interface SignalOption {
  /** Stops the wait, so that the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Returns the options of a call that can be aborted; null counts as absent. Throws {@link InvalidOptionError} if they
 * are not an object or the signal is not a signal. Throws the signal's reason if it is aborted.
 */
export function startCall<Options extends SignalOption>(
  options: Options | null | undefined,
): Partial<Options> {
  if (typeof (options ?? {}) !== "object") {
    const accepted = "an object such as { signal: AbortSignal.timeout(5_000) }"
    requireNone([{ path: "", message: `${show(options)} is not an options object`, accepted }])
  }
  const signal = options?.signal
  if (signal !== undefined) requireValue("signal", signal, checkSignal)
  signal?.throwIfAborted()
  return options ?? {}
}

const checkSignal = mustBe("a signal", "an AbortSignal", isSignal)

/** True for an AbortSignal, also from another realm or a polyfill. */
export function isSignal(value: unknown): value is AbortSignal {
  const { aborted, throwIfAborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>
  return (
    typeof aborted === "boolean" &&
    typeof throwIfAborted === "function" &&
    typeof addEventListener === "function"
  )
}
