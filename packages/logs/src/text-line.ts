/**
 * A line for people. The tone is the meaning of its text, for example to color it. Texts may come from clients, so escape
 * control characters before a terminal shows them.
 */
export type TextLine =
  | string
  | {
      /** The meaning of the text. */
      readonly tone: "strong" | "quiet" | "good" | "bad" | "changed"
      /** The text, on one line. */
      readonly text: string
    }

/** Returns a line with a tone. */
export function tinted(tone: Exclude<TextLine, string>["tone"], text: string): TextLine {
  return { tone, text }
}
