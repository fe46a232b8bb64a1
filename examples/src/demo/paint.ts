/** What a text is, for its colour. */
export type Tone = "strong" | "quiet" | "good" | "bad" | "told"

/** Puts a text in its colour, or leaves it as it is. */
export type Paint = (tone: Tone, text: string) => string

const SGR: Readonly<Record<Tone, number>> = { strong: 1, quiet: 2, good: 32, bad: 31, told: 33 }

/** Colours for a terminal, unless NO_COLOR asks for none (https://no-color.org). */
export function createPaint(isTerminal: boolean, noColor: string | undefined): Paint {
  if (!isTerminal || (noColor !== undefined && noColor !== "")) return (_tone, text) => text
  return (tone, text) => (text.trim() === "" ? text : `\u001b[${SGR[tone]}m${text}\u001b[0m`)
}
