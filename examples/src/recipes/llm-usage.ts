interface Usage {
  total_tokens?: number
  input_tokens?: number
  output_tokens?: number
}

/**
 * Returns the tokens that a complete response of a model reports, as JSON or as an
 * event stream. Returns undefined for any other text.
 */
export function usageIn(text: string): number | undefined {
  const events = text.trimStart().startsWith("{")
    ? [text]
    : Array.from(text.matchAll(/^data: ?(\{.*\})\r?$/gm), ([, json = ""]) => json)
  // A later event repeats or adds members.
  const usage: Usage = {}
  for (const event of events) {
    const { message, usage: own = message?.usage } = JSON.parse(event)
    Object.assign(usage, own)
  }
  const { total_tokens, input_tokens, output_tokens } = usage
  if (total_tokens !== undefined) return total_tokens
  if (input_tokens === undefined || output_tokens === undefined) return undefined
  return input_tokens + output_tokens
}
