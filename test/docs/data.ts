import { readRuleFile } from "@sluice/rules"
import { parseAllDocuments } from "yaml"
import { type Block, placeOf } from "./blocks.ts"

/** Returns the problems of a YAML or JSON block. Documents with rules are parsed like a rules file. */
export async function readData(block: Block): Promise<string[]> {
  const { language, text } = block
  const isRules = /^(service_id|rules)\b|^\s*\{\s*"(service_id|rules)": (?!\{)/.test(text)
  if (isRules) {
    const { problems } = await readRuleFile(text, language === "json" ? "json" : "yaml")
    return problems.map(({ line, message }) => `${placeOf(block, line)}: ${message}`)
  }
  if (language === "json") {
    try {
      JSON.parse(text)
      return []
    } catch (error) {
      return [`${placeOf(block)}: ${(error as Error).message}`]
    }
  }
  return parseAllDocuments(text).flatMap(({ errors }) =>
    errors.map(({ message, linePos }) => `${placeOf(block, linePos?.[0].line)}: ${message}`),
  )
}
