const SHORT: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  b: "\b",
  f: "\f",
  v: "\v",
  '"': '"',
  "\\": "\\",
  "/": "/",
}

const ESCAPE = /\\(?:x([\da-f]{2})|u([\da-f]{4})|([nrtbfv"\\/]))/gi

/**
 * Returns the text with the escapes of nginx and Apache decoded: `\x22`, `\"`, `\\`, `\n`, and `\u0022` from nginx's
 * `escape=json`. Each byte becomes one character, as in the headers and the target that Node passes to an app.
 */
export function unescaped(text: string): string {
  if (!text.includes("\\")) return text
  return text.replace(ESCAPE, (whole, byte: string | undefined, unit: string | undefined, short: string) => {
    const code = byte ?? unit
    return code === undefined ? (SHORT[short] ?? whole) : String.fromCharCode(Number.parseInt(code, 16))
  })
}

/**
 * Returns the text of a format line as its server reads it: `\t`, `\r`, `\n`, `\"`, `\'` and `\\` are escapes.
 * Removes line breaks at the end of the format, because the reader removes the line break of each line.
 */
export function unescapedFormat(text: string): string {
  return text.replace(/\\([trn"'\\])/g, (_, char: string) => SHORT[char] ?? char).replace(/[\r\n]+$/, "")
}

/** Returns the position of the next quote that is not escaped; -1 if there is no such quote. */
export function quoteFrom(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 1)) {
    let start = at
    while (start > from && text.charCodeAt(start - 1) === 92) start--
    if ((at - start) % 2 === 0) return at
  }
  return -1
}
