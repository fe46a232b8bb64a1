import { classOf } from "../../ground/show.ts"
import { scalarText } from "../../request/field.ts"
import { Callback, type CallbackContext } from "../callbacks/callback.ts"

/**
 * Creates the callback for a field of the app's own. If the callback fails, the field is missing. A warning is logged
 * for a result that is neither a string nor a number, but rules still count a boolean or a bigint by its text.
 */
export function fieldCallback(
  name: string,
  extractor: (request: unknown) => unknown,
  context: CallbackContext,
): Callback<string | undefined> {
  const { warner } = context
  const report = (what: string, effect: string, cause?: unknown): void =>
    warner.once("SLUICE_EXTRACTOR_FAILED", `The function of field "${name}" ${what}. ${effect}`, name, cause)
  return new Callback(extractor, context, {
    read(result) {
      const text = scalarText(result)
      const isSound = typeof result === "string" || result === undefined || result === null
      if (isSound || (typeof result === "number" && text !== undefined)) return text
      // The function may return such a value for each request, so build the message only once.
      if (!warner.has("SLUICE_EXTRACTOR_FAILED", name)) {
        const effect = text === undefined ? AS_MISSING : "Rules count by its text."
        report(`returned ${kindOf(result)}; it must return a string or a number, such as an id`, effect)
      }
      return text
    },
    failed(what, cause) {
      report(what, AS_MISSING, cause)
      return undefined
    },
  })
}

const AS_MISSING = "Rules that count by the field treat it as missing."

/** Returns the kind of a value, because its content may be a client's data, which must not be logged. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list"
  if (typeof value === "number") return String(value)
  return classOf(value) ?? (typeof value === "object" ? "an object" : `a ${typeof value}`)
}
