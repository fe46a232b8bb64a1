/**
 * A line of text with a tone, by which it can be colored. The text may come from clients, so escape control
 * characters before you write it to a terminal.
 */
export type TextLine =
  | string
  | {
      /** The meaning of the text, such as good or bad. */
      readonly tone: "strong" | "quiet" | "good" | "bad" | "changed"
      /** The text, on one line. */
      readonly text: string
    }

/** Returns a line with a tone. */
export function tinted(tone: Exclude<TextLine, string>["tone"], text: string): TextLine {
  return { tone, text }
}
