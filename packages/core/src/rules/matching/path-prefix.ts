import type { Token } from "path-to-regexp"
import { pathTokens } from "./match.ts"

/**
 * A segment of every path that a pattern matches, spelled as in normalized paths. Undefined if any string matches the
 * segment.
 */
export type PrefixSegment = string | undefined

/**
 * Returns the segments at the start of every path that the pattern matches: "users", any, "files" for
 * "/users/:id/files/*". The result ends before the first part that may be absent or may span several segments.
 */
export function pathPrefix(pattern: string): PrefixSegment[] {
  const segments: PrefixSegment[] = []
  const tokens = pathTokens(pattern)
  let text = ""
  let isAny = false
  for (const [index, token] of tokens.entries()) {
    if (token.type === "text") {
      const [first = "", ...others] = token.value.split("/")
      text += first
      for (const other of others) {
        segments.push(segmentOf(text, isAny))
        text = other
        isAny = false
      }
    } else if (token.type === "param") isAny = true
    else if (isBoundary(tokens, index)) break
    // Drop the empty string before the first slash.
    else return segments.slice(1)
  }
  if (text !== "" || isAny) segments.push(segmentOf(text, isAny))
  return segments.slice(1)
}

/**
 * Returns undefined for a string that is not ASCII. Patterns ignore case, and the case rules of letters outside ASCII
 * are more complex.
 */
function segmentOf(text: string, isAny: boolean): PrefixSegment {
  return isAny || !/^[\x21-\x7e]*$/.test(text) ? undefined : text
}

/** True if a segment ends before this token, whether the token is absent or present. */
function isBoundary(tokens: readonly Token[], index: number): boolean {
  for (const token of tokens.slice(index)) {
    if (token.type !== "group") return beginsWithSlash(token)
    const [first] = token.tokens
    if (first === undefined || !beginsWithSlash(first)) return false
  }
  return true
}

function beginsWithSlash(token: Token): boolean {
  return token.type === "text" && token.value.startsWith("/")
}
