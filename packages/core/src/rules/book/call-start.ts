import { InvalidOptionError } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import type { SignalOption } from "../rule-book.ts"

/**
 * Returns the options of a call that can be aborted; null counts as absent. Throws {@link InvalidOptionError} if they
 * are not an object or the signal is not a signal. Throws the signal's reason if it is aborted.
 */
export function startCall<Options extends SignalOption>(
  options: Options | null | undefined,
): Partial<Options> {
  if (typeof (options ?? {}) !== "object") {
    const accepted = "an object such as { signal: AbortSignal.timeout(5_000) }"
    throw new InvalidOptionError([
      { path: "", message: `${show(options)} is not an options object`, accepted },
    ])
  }
  const signal: unknown = options?.signal
  if (signal !== undefined && !isSignal(signal)) {
    const message = `${show(signal)} is not a signal`
    throw new InvalidOptionError([{ path: "signal", message, accepted: "an AbortSignal" }])
  }
  signal?.throwIfAborted()
  return options ?? {}
}

/** Throws {@link InvalidOptionError} for a service that is not a string. */
export function requireService(service: unknown): void {
  if (typeof service === "string") return
  throw new InvalidOptionError([
    { path: "service", message: `${show(service)} is not the name of a service`, accepted: "a string" },
  ])
}

/** True for an AbortSignal, also from another realm or a polyfill. */
export function isSignal(value: unknown): value is AbortSignal {
  const { aborted, throwIfAborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>
  return (
    typeof aborted === "boolean" &&
    typeof throwIfAborted === "function" &&
    typeof addEventListener === "function"
  )
}
