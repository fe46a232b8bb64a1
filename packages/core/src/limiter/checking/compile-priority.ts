import type { Warner } from "../../ground/warnings.ts"
import { called, yieldedText } from "../callbacks/compile-test.ts"
import { isPriority, PRIORITY } from "../options/priority.ts"

/**
 * Compiles the option `priority`. The compiled function returns the priority with which a request waits. If the app's
 * function fails, the priority is 0, and one warning is logged.
 */
export function compilePriority(
  priority: number | ((request: unknown) => unknown),
  warner: Warner,
): (request: unknown) => number {
  if (typeof priority === "number") return () => priority
  return (request) => {
    const { value, failure } = called(priority, request)
    if (isPriority(value)) return value
    warner.once(
      "SLUICE_CALLBACK_FAILED",
      `priority ${failure ?? yieldedText(value)}. It must return ${PRIORITY}, not a promise; otherwise the request has priority 0.`,
      "priority",
    )
    return 0
  }
}
