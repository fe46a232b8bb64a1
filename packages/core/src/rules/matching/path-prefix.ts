import type { Token } from "path-to-regexp"
import { pathTokens } from "./match.ts"

/** A segment that every path of a pattern has, in the spelling of normalized paths; undefined for a segment of any text. */
export type PrefixSegment = string | undefined

/**
 * Returns the segments that every path begins with that a pattern matches: those of "/users/:id/files/*" are "users", any, "files".
 * Ends before the first part that may be absent or may have several segments.
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
    else return withoutRoot(isBoundary(tokens, index) ? ended(segments, text, isAny) : segments)
  }
  return withoutRoot(ended(segments, text, isAny))
}

/** The segments with the last one, if there is anything in it. */
function ended(segments: readonly PrefixSegment[], text: string, isAny: boolean): readonly PrefixSegment[] {
  return text === "" && !isAny ? segments : [...segments, segmentOf(text, isAny)]
}

/** Patterns are matched without regard to case, by rules of their own for letters that are not ASCII. */
function segmentOf(text: string, isAny: boolean): PrefixSegment {
  return isAny || !/^[\x21-\x7e]*$/.test(text) ? undefined : text
}

/** Before the first slash there is nothing. */
function withoutRoot(segments: readonly PrefixSegment[]): PrefixSegment[] {
  return segments.slice(1)
}

/** Whether a segment ends before this token, both if it is absent and if it is there. */
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
