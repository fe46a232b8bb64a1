interface Usage {
  total_tokens?: number
  input_tokens?: number
  output_tokens?: number
}

/** Returns the tokens that a complete response reports, or undefined. */
export function usageIn(text: string): number | undefined {
  const events = text.trimStart().startsWith("{")
    ? [text]
    : Array.from(text.matchAll(/^data: ?(\{.*\})\r?$/gm), ([, json = ""]) => json)
  const usage: Usage = {} // of all events, because later ones repeat or add members
  for (const event of events) {
    const { message, usage: own = message?.usage } = JSON.parse(event)
    Object.assign(usage, own)
  }
  const { input_tokens: input, output_tokens: output } = usage
  const sum =
    input === undefined || output === undefined ? undefined : input + output
  return usage.total_tokens ?? sum
}
