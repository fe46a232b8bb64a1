import { parseJsonText } from "./json-text.ts"
import { type PlacedValue, placedJson } from "./text-places.ts"
import { yamlValues } from "./yaml-text.ts"

/** The format of a file of rules. `"yaml"` accepts JSON as well. */
export type TextFormat = "yaml" | "json"

/**
 * Returns the documents in the text of a file of rules; none for an empty text. Throws FileTextError while iterating or
 * immediately.
 */
export function valuesIn(text: string, format: TextFormat): Iterable<PlacedValue> {
  if (text.trim() === "") return []
  return format === "json" ? placedJson(text, parseJsonText(text)) : yamlValues(text)
}
