/** Shows a text while it changes. */
export interface Screen {
  /** In a terminal in place of the text before, elsewhere not at all. */
  update(text: string): void
  /** Shows the text for good. */
  finish(text: string): void
}

/** A screen on a stream. */
export function createScreen(write: (text: string) => unknown, isTerminal: boolean): Screen {
  let shown = 0
  const put = (text: string): void => {
    if (!isTerminal) {
      write(`${text}\n`)
      return
    }
    // Up to the first line, and line by line to its end: erasing all of it first would flicker. A line that wraps in a
    // narrow window would be two, so wrapping is off meanwhile.
    const up = shown === 0 ? "" : `\u001b[${shown}A`
    write(`\u001b[?7l${up}${text.replaceAll("\n", "\u001b[K\n")}\u001b[K\n\u001b[?7h`)
    shown = text.split("\n").length
  }
  return {
    update(text) {
      if (isTerminal) put(text)
    },
    finish: put,
  }
}
