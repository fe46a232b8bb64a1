import { withExactNumbers } from "@sluice/core"
import { invalidArgument } from "../status-error.ts"
import { requireFewValues } from "../wire/json-list.ts"
import type { KnownFacts } from "./asked-request.ts"

/** Maximum length of a request in bytes of UTF-8, the encoding of gRPC. */
const LONGEST_BYTES = 64 * 1024

/**
 * Parses the JSON text of an object. Numbers that JavaScript cannot represent exactly become strings. Returns
 * undefined if the text is not a JSON object. Such a text is valid if the rules read no field. Throws StatusError if
 * the text exceeds 64 KiB or contains more than 8,192 values.
 */
export function readRequestText(text: string): KnownFacts | undefined {
  // A UTF-16 code unit takes at most three bytes, so the number of code units alone proves that most strings are
  // short enough.
  if (text.length * 3 > LONGEST_BYTES && Buffer.byteLength(text) > LONGEST_BYTES) {
    throw invalidArgument({ field: "request", description: `is longer than ${LONGEST_BYTES} bytes` })
  }
  requireFewValues(text)
  try {
    const value: unknown = JSON.parse(withExactNumbers(text))
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as KnownFacts)
      : undefined
  } catch {
    return undefined
  }
}

/** Creates the error for a request that is not a JSON object, if the rules of its service read fields. */
export function notAnObject(): Error {
  return invalidArgument({ field: "request", description: "is not the text of a JSON object" })
}
