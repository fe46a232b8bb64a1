/** A request to be written to a log. */
export interface Written {
  /** Whole seconds in epoch milliseconds. */
  readonly atMs: number
  readonly method: string
  readonly url: string
  readonly status: number
  readonly address: string
  readonly user?: string | undefined
  readonly referer?: string | undefined
  readonly agent?: string | undefined
}

/** Escapes a value as nginx does: quotes, backslashes, and bytes that are not printable ASCII. */
export function nginxEscaped(text: string | undefined): string {
  return (text ?? "-").replace(/["\\]|[^ -~]/g, (char) => `\\x${hex(char).toUpperCase()}`)
}

/** Escapes a value as Apache does. */
export function apacheEscaped(text: string | undefined): string {
  return (text ?? "-").replace(/["\\\n\r\t\b\v\f]|[^ -~]/g, (char) => SHORT[char] ?? `\\x${hex(char)}`)
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\v": "\\v",
  "\f": "\\f",
}

/** Writes a line of the common or combined format, with a way to escape values. */
export function standardLine(
  { atMs, method, url, status, address, user, referer, agent }: Written,
  escaped: (text: string | undefined) => string,
  isCombined: boolean,
): string {
  const common = `${address} - ${escaped(user)} [${clf(atMs)}] "${escaped(`${method} ${url} HTTP/1.1`)}" ${status} 512`
  return isCombined ? `${common} "${escaped(referer)}" "${escaped(agent)}"` : common
}

/** Formats a time as "10/Oct/2025:13:55:36 +0000", or in another zone. */
export function clf(atMs: number, offsetMinutes = 0): string {
  const iso = new Date(atMs + offsetMinutes * 60_000).toISOString()
  const month = "JanFebMarAprMayJunJulAugSepOctNovDec".slice(
    Number(iso.slice(5, 7)) * 3 - 3,
    Number(iso.slice(5, 7)) * 3,
  )
  const minutes = Math.abs(offsetMinutes)
  const zone = `${offsetMinutes < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}${two(minutes % 60)}`
  return `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} ${zone}`
}

function two(value: number): string {
  return String(value).padStart(2, "0")
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(2, "0")
}
