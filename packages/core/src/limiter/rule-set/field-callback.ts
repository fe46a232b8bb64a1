import { extractedText } from "../../request/field.ts"
import { Callback, type CallbackContext } from "../callback.ts"

/** Creates the callback of the app's own field. If it fails, the field is missing. */
export function fieldCallback(
  name: string,
  extractor: (request: unknown) => unknown,
  context: CallbackContext,
): Callback<string | undefined> {
  return new Callback(extractor, context, {
    read: (result) => extractedText(name, result),
    failed(what, cause) {
      const message = `Reading field "${name}" ${what}. The field counts as missing.`
      context.warner.once("SLUICE_EXTRACTOR_FAILED", message, name, cause)
      return undefined
    },
  })
}
