/** A command line of a block. */
export interface CommandLine {
  /** The line number in the block, starting at 1. */
  readonly line: number
  /** The program and its arguments, without quotes. Substitutions such as `$(…)` and variables stay unchanged. */
  readonly words: readonly string[]
}

/**
 * Returns the command lines of a shell block, without comments. Commands after `&&` and `|` are separate lines.
 * @throws Error when a quote is not closed
 */
export function commandLines(text: string): CommandLine[] {
  const found: CommandLine[] = []
  let line = 1
  let words: string[] = []
  let begunAt = 1
  const end = (): void => {
    if (words.length > 0) found.push({ line: begunAt, words })
    words = []
  }
  // A continuation, a line end, a comment, a join of two commands, blanks, or a word of quoted and plain parts.
  const token = /\\\n|\n|#[^\n]*|&&|\||[ \t]+|(?:"(?:\\.|[^"\\])*"|'[^']*'|\$\([^)]*\)|[^\s"'|&\\])+|(.)/gs
  for (const [piece, stray] of text.matchAll(token)) {
    if (stray !== undefined) throw new Error(`line ${line}: ${stray} is not understood`)
    if (piece === "\n" || piece === "&&" || piece === "|") end()
    else if (!/^(\\\n|#|[ \t])/.test(piece)) {
      if (words.length === 0) begunAt = line
      words.push(unquote(piece))
    }
    line += piece.split("\n").length - 1
  }
  end()
  return found
}

function unquote(word: string): string {
  return word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'/gs, (_, double?: string, single?: string) =>
    double === undefined ? (single ?? "") : double.replace(/\\(["\\$`])/g, "$1"),
  )
}
