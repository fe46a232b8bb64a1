import { LogError } from "../../log-error.ts"

/** The meaning of a variable of a format. */
export type Meaning =
  | { readonly kind: "address" | "request" | "method" | "target" | "path" | "status" | "user" | "other" }
  /** A port. The last colon of the word precedes the port, because an IPv6 address also contains colons. */
  | { readonly kind: "port" }
  | { readonly kind: "header" | "cookie"; readonly name: string }
  | {
      readonly kind: "time"
      /** Returns epoch milliseconds, or NaN. */
      readonly read: (text: string) => number
      readonly resolutionMs: number
      /** True if the time is the end of the request, so the duration must be subtracted. */
      readonly isEnd: boolean
    }
  | { readonly kind: "duration"; readonly unitMs: number }

/** A variable in a format line. */
export interface Variable {
  /** The variable as written in the format, such as "$remote_user" or "%{X-Api-Key}i". */
  readonly text: string
  /** The names by which `--map` may refer to it. */
  readonly names: readonly string[]
  readonly meaning: Meaning
  /** True if the value cannot contain a space, because the client does not choose it freely. */
  readonly isWord: boolean
  /**
   * True if the value may be a list of words, such as the upstreams "10.0.0.1:80, 10.0.0.2:80" of nginx.
   */
  readonly isList?: boolean | undefined
  /** Length of the value, if all values have the same length. */
  readonly length?: number | undefined
}

/** A part of a format line: a literal text or a variable. */
export type FormatPart = string | Variable

/** Reads the part of a line between two quotes. */
export interface SegmentReader {
  /**
   * The text that follows the first quote if the user name is empty and written as "". Undefined if the segment does
   * not contain the user name.
   */
  readonly afterEmptyUser: string | undefined
  /** Number of spaces in the literals of the segment. */
  readonly spaces: number
  /** Writes the values of the variables to `values`. Returns false if the text does not match the format. */
  read(text: string, values: string[]): boolean
}

/**
 * Returns the reader of a segment. Throws LogError if two variables touch, because the end of the first variable
 * would be unknown.
 *
 * A client may write spaces into its values, so the segment is read from both ends up to the first variable that a
 * client can choose freely. If there are several such variables, both directions must agree. Otherwise, the line is
 * ambiguous and does not count as parsed.
 */
export function segmentReader(
  parts: readonly FormatPart[],
  variables: readonly Variable[],
  name: string,
): SegmentReader {
  const { literals, chosen } = alternating(parts, name)
  const indexes = chosen.map((variable) => variables.indexOf(variable))
  const free = chosen.flatMap(({ isWord, isList, length }, at) =>
    isWord || isList === true || length !== undefined ? [] : [at],
  )
  const firstFree = free[0] ?? chosen.length
  const lastFree = free.at(-1) ?? -1
  const user = chosen.findIndex(({ meaning }) => meaning.kind === "user")
  const isOnlyVariable = chosen.length === 1 && literals.every((literal) => literal === "")
  const starts: number[] = []
  const ends: number[] = []

  function readForward(text: string, count: number): number {
    let at = (literals[0] as string).length
    for (let index = 0; index < count; index++) {
      const next = literals[index + 1] as string
      const { length } = chosen[index] as Variable
      const isLast = index === chosen.length - 1
      const end =
        length !== undefined
          ? at + length
          : isLast
            ? text.length - next.length
            : endOfValue(text, at, next, chosen[index] as Variable, chosen[index + 1] as Variable)
      if (end < at || !text.startsWith(next, end)) return -1
      starts[index] = at
      ends[index] = end
      at = end + next.length
    }
    return at
  }

  function readBackward(text: string, from: number): number {
    let end = text.length - (literals.at(-1) as string).length
    for (let index = chosen.length - 1; index > from; index--) {
      const before = literals[index] as string
      const { length } = chosen[index] as Variable
      const latest = end - before.length - (length ?? 0)
      if (latest < 0) return -1
      const start =
        length === undefined ? startOfValue(text, before, latest, chosen[index] as Variable) : latest
      if (start === -1 || !text.startsWith(before, start)) return -1
      starts[index] = start + before.length
      ends[index] = end
      end = start
    }
    return end
  }

  function readsBothWays(text: string): boolean {
    if (readForward(text, chosen.length) !== text.length) return false
    if (free.length > 1) {
      const forward = starts.join()
      return readBackward(text, 0) !== -1 && starts.join() === forward
    }
    return true
  }

  function readsAround(text: string): boolean {
    const start = readForward(text, firstFree)
    const end = start === -1 ? -1 : readBackward(text, firstFree)
    starts[firstFree] = start
    ends[firstFree] = end
    return end >= start && start !== -1
  }

  return {
    afterEmptyUser: user === -1 ? undefined : `"${literals[user + 1]}`,
    spaces: literals.join("").split(" ").length - 1,
    read(text, values) {
      if (isOnlyVariable && !chosen[0]?.isWord) {
        values[indexes[0] as number] = text
        return true
      }
      const first = literals[0] as string
      const last = literals.at(-1) as string
      if (!text.startsWith(first) || !text.endsWith(last)) return false
      if (chosen.length === 0) return text === first
      if (text.length < first.length + last.length) return false
      const isRead = firstFree === lastFree ? readsAround(text) : readsBothWays(text)
      if (!isRead) return false
      for (let index = 0; index < chosen.length; index++) {
        const value = text.slice(starts[index], ends[index])
        if ((chosen[index] as Variable).isWord && value.includes(" ")) return false
        values[indexes[index] as number] = value
      }
      return true
    },
  }
}

/** Returns the end of a value before a literal and another variable; -1 if the literal is missing. */
function endOfValue(text: string, at: number, literal: string, value: Variable, following: Variable): number {
  if (following.meaning.kind === "port" && literal === ":") {
    const space = text.indexOf(" ", at)
    return text.lastIndexOf(":", space === -1 ? text.length : space)
  }
  let end = text.indexOf(literal, at)
  while (value.isList === true && end !== -1 && isWithinList(text, end)) end = text.indexOf(literal, end + 1)
  return end
}

/** Returns the start of the literal before a value; -1 if the literal is missing. */
function startOfValue(text: string, literal: string, latest: number, value: Variable): number {
  let start = text.lastIndexOf(literal, latest)
  while (value.isList === true && start > 0 && isWithinList(text, start))
    start = text.lastIndexOf(literal, start - 1)
  return start
}

/** True if the space at a position separates two words of a list. In a list, " : " starts a new group of upstreams. */
function isWithinList(text: string, at: number): boolean {
  return text[at] === " " && (text[at - 1] === "," || text[at - 1] === ":" || text.startsWith(" : ", at))
}

/** Splits parts into variables and the literals around them. The result contains one more literal than variables. */
function alternating(
  parts: readonly FormatPart[],
  name: string,
): { readonly literals: readonly string[]; readonly chosen: readonly Variable[] } {
  const literals = [""]
  const chosen: Variable[] = []
  for (const part of parts) {
    if (typeof part === "string") {
      literals[literals.length - 1] += part
      continue
    }
    const before = chosen.at(-1)
    if (before !== undefined && literals.at(-1) === "") {
      throw new LogError(
        `The format ${JSON.stringify(name)} cannot be read: nothing separates ${before.text} and ${part.text}; ` +
          "log them with a space or quotes between them",
      )
    }
    chosen.push(part)
    literals.push("")
  }
  return { literals, chosen }
}
