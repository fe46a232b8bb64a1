/** The meaning of a text, which determines its color. */
export type Tone = "strong" | "quiet" | "good" | "bad" | "told"

/** A function that returns a text in color, or unchanged. */
export type Paint = (tone: Tone, text: string) => string

const SGR: Readonly<Record<Tone, number>> = { strong: 1, quiet: 2, good: 32, bad: 31, told: 33 }

/** Creates a function that colors texts for a terminal, unless NO_COLOR is set (https://no-color.org). */
export function createPaint(isTerminal: boolean, noColor: string | undefined): Paint {
  if (!isTerminal || (noColor !== undefined && noColor !== "")) return (_tone, text) => text
  return (tone, text) => (text.trim() === "" ? text : `\u001b[${SGR[tone]}m${text}\u001b[0m`)
}
