import type { StoredDocument } from "@sluice/rules"
import { Document, isMap, isScalar, type Scalar, visit } from "yaml"
import { formatJson } from "./line.ts"

/**
 * Returns rule documents as the text of a file: consecutive YAML documents, or JSON, with a list for several
 * documents.
 */
export function formatDocuments(documents: readonly StoredDocument[], format: "yaml" | "json"): string {
  if (format === "json") return `${formatJson(documents.length === 1 ? documents[0] : documents, 2)}\n`
  return documents.map(formatYaml).join("---\n")
}

function formatYaml(value: StoredDocument): string {
  const document = new Document(value)
  visit(document, {
    Pair(_key, pair) {
      // Write short maps on one line: rate: { requests_per_unit: 5, unit: minute }
      if (isScalar(pair.key) && pair.key.value === "rate" && isMap(pair.value)) pair.value.flow = true
    },
    Scalar(_key, scalar) {
      if (typeof scalar.value === "string" && INVISIBLE.test(scalar.value)) {
        scalar.type = "QUOTE_DOUBLE" satisfies Scalar["type"]
      }
    },
  })
  // Within double quotes, an escape represents the same character, but is visible.
  return document.toString({ lineWidth: 0 }).replace(new RegExp(INVISIBLE, "gu"), (char) => {
    if (char === "\n") return char
    const code = (char.codePointAt(0) as number).toString(16)
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`
  })
}

const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u
