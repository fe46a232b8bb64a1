import { invalidArgument } from "../status-error.ts"
import type { KnownFacts } from "./asked-request.ts"

/** UTF-8, as gRPC carries it. */
const LONGEST_BYTES = 64 * 1024

/**
 * The object that a text of JSON says; undefined where it says none, which does not matter to rules that read no field.
 * Throws StatusError where it is longer than 64 KiB, whatever it says.
 */
export function readRequestText(text: string): KnownFacts | undefined {
  // No UTF-16 unit takes more than three bytes, so that most texts need not be measured.
  if (text.length * 3 > LONGEST_BYTES && Buffer.byteLength(text) > LONGEST_BYTES) {
    throw invalidArgument({ field: "request", description: `is longer than ${LONGEST_BYTES} bytes` })
  }
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as KnownFacts)
      : undefined
  } catch {
    return undefined
  }
}

/** The error for a request that is no JSON object, of a service whose rules read it. */
export function notAnObject(): Error {
  return invalidArgument({ field: "request", description: "is not the text of a JSON object" })
}
