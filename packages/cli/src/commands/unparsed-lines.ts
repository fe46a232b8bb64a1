import type { LogSummary } from "@sluice/logs"
import { counted } from "../counted.ts"
import { type OutputLine, tinted } from "../line.ts"

/**
 * Returns a warning with examples of lines that are not in the format of their file. Omits the examples if `areHidden`.
 */
export function unparsedLines(
  { unparsed, unparsedExamples }: LogSummary,
  areHidden: boolean,
): readonly OutputLine[] {
  if (unparsed === 0) return []
  return [
    tinted("changed", `warning: ${counted(unparsed, "line")} not in the format of its file`),
    // A line may contain the client's address.
    ...(areHidden ? [] : unparsedExamples).map(({ file, line, text }) => `  ${file}:${line}: ${text}`),
  ]
}
