import { classOf } from "../../ground/show.ts"
import { scalarText } from "../../request/field.ts"
import { Callback, type CallbackContext } from "../callback.ts"

/**
 * Creates the callback of the app's own field. If it fails, the field is missing. A result that is neither a string nor a
 * number is reported. A boolean and a bigint still count as their text.
 */
export function fieldCallback(
  name: string,
  extractor: (request: unknown) => unknown,
  context: CallbackContext,
): Callback<string | undefined> {
  const report = (what: string, text: string | undefined, cause?: unknown): string | undefined => {
    const effect = text === undefined ? "The field counts as missing." : "It counts as its text."
    context.warner.once("SLUICE_EXTRACTOR_FAILED", `Reading field "${name}" ${what}. ${effect}`, name, cause)
    return text
  }
  return new Callback(extractor, context, {
    read(result) {
      const text = scalarText(result)
      const isSound = typeof result === "string" || result === undefined || result === null
      if (isSound || (typeof result === "number" && text !== undefined)) return text
      return report(`returned ${kindOf(result)}; its function must return a string or a number`, text)
    },
    failed: (what, cause) => report(what, undefined, cause),
  })
}

/** Returns the kind of a value. Its content may be a client's data, which must not be logged. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list"
  if (typeof value === "number") return String(value)
  return classOf(value) ?? (typeof value === "object" ? "an object" : `a ${typeof value}`)
}
