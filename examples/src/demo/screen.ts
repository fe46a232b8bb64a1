/** A display for a text that changes. */
export interface Screen {
  /** Replaces the previous text. A no-op if the output is not a terminal. */
  update(text: string): void
  /** Shows the final text. */
  finish(text: string): void
}

/** Creates a screen that writes to a stream. */
export function createScreen(write: (text: string) => unknown, isTerminal: boolean): Screen {
  let shown = 0
  const put = (text: string): void => {
    if (!isTerminal) {
      write(`${text}\n`)
      return
    }
    // Move up to the first line, and clear the rest of each line while it is written. Erasing everything first would
    // flicker. Line wrap is off, because a line that wraps in a narrow window would take up two rows.
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
