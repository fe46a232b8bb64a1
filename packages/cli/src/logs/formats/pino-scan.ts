import { epochTime, isoTime } from "../times.ts"
import { statusIn } from "./json-value.ts"
import type { PinoLine } from "./pino-line.ts"

const QUOTE = 34
const COMMA = 44
const DASH = 45
const DOT = 46
const ZERO = 48
const COLON = 58
const OPEN = 123
const CLOSE = 125

/** The object whose members are being read. */
type Parent = "line" | "req" | "res" | "ratelimit"

/**
 * Scans a line of pino. Returns false if anything is unusual: an escape, a list, a deeper object, a member of another
 * type, or invalid JSON. The caller then parses the line. Members of `out` may have changed in that case.
 *
 * No text contains an escape, so every text ends at its next quote, and a client cannot forge a member.
 */
export function scanPinoLine(line: string, out: PinoLine): boolean {
  if (line.charCodeAt(0) !== OPEN || line.includes("\\")) return false
  reset(out)
  let parent: Parent = "line"
  let at = 1
  for (;;) {
    const key = at + 1
    const keyEnd = line.indexOf('"', key)
    if (line.charCodeAt(at) !== QUOTE || keyEnd === -1 || line.charCodeAt(keyEnd + 1) !== COLON) return false
    const value = keyEnd + 2
    const first = line.charCodeAt(value)
    if (first === OPEN) {
      const inner: Parent | undefined = parent === "line" ? innerOf(line, key, keyEnd - key) : undefined
      if (inner === undefined) return false
      parent = inner
      enter(inner, out)
      at = value + 1
      continue
    }
    if (first === QUOTE) {
      const end = line.indexOf('"', value + 1)
      if (end === -1 || !takeText(parent, line, key, keyEnd - key, value + 1, end, out)) return false
      at = end + 1
    } else {
      at = scalarEnd(line, value, first)
      if (at === -1 || !takeScalar(parent, line, key, keyEnd - key, value, at, out)) return false
    }
    let next = line.charCodeAt(at)
    if (next === CLOSE && parent !== "line") {
      if (parent === "ratelimit" && !leaveRatelimit(out)) return false
      parent = "line"
      next = line.charCodeAt(++at)
    }
    if (next !== COMMA) return next === CLOSE && parent === "line" && at === line.length - 1
    at++
  }
}

// These two are only complete at the end of `ratelimit`.
let policy: string | undefined
let allowed: boolean | undefined

function reset(out: PinoLine): void {
  out.timeMs = Number.NaN
  out.message = undefined
  out.hostname = undefined
  out.pid = undefined
  out.reqId = undefined
  out.hasRequest = false
  out.method = undefined
  out.url = undefined
  out.address = undefined
  out.status = undefined
  out.durationMs = undefined
  out.live = undefined
  out.object = undefined
}

function innerOf(line: string, key: number, length: number): Parent | undefined {
  if (length === 3 && line.startsWith("req", key)) return "req"
  if (length === 3 && line.startsWith("res", key)) return "res"
  return length === 9 && line.startsWith("ratelimit", key) ? "ratelimit" : undefined
}

/** Forgets the members of an earlier object with the same name. `JSON.parse` uses the last one, too. */
function enter(inner: Parent, out: PinoLine): void {
  if (inner === "req") {
    out.hasRequest = true
    out.method = undefined
    out.url = undefined
    out.address = undefined
  } else if (inner === "res") out.status = undefined
  else {
    policy = undefined
    allowed = undefined
    out.live = undefined
  }
}

function leaveRatelimit(out: PinoLine): boolean {
  if (policy === undefined || allowed === undefined) return false
  out.live = { allowed, policy }
  return true
}

/** Keeps a text if it is needed. Returns false if it should have another type. */
function takeText(
  parent: Parent,
  line: string,
  key: number,
  length: number,
  from: number,
  to: number,
  out: PinoLine,
): boolean {
  if (parent === "req") {
    if (length === 3 && line.startsWith("url", key)) out.url = textAt(line, from, to)
    else if (length === 6 && line.startsWith("method", key)) out.method = textAt(line, from, to)
    else if (length === 13 && line.startsWith("remoteAddress", key)) out.address = textAt(line, from, to)
    return true
  }
  if (parent === "ratelimit") {
    if (length === 6 && line.startsWith("policy", key)) policy = line.slice(from, to)
    return !(length === 7 && line.startsWith("allowed", key))
  }
  if (parent === "res") return !(length === 10 && line.startsWith("statusCode", key))
  switch (length) {
    case 3:
      if (line.startsWith("msg", key)) out.message = textAt(line, from, to)
      else return innerOf(line, key, length) === undefined && !line.startsWith("pid", key)
      return true
    case 4:
      if (line.startsWith("time", key)) out.timeMs = isoTime(line.slice(from, to))
      return !Number.isNaN(out.timeMs) || !line.startsWith("time", key)
    case 5:
      if (line.startsWith("reqId", key)) out.reqId = textAt(line, from, to)
      return true
    case 8:
      if (line.startsWith("hostname", key)) out.hostname = textAt(line, from, to)
      return true
    case 9:
      return !line.startsWith("ratelimit", key)
    case 12:
      return !line.startsWith("responseTime", key)
  }
  return true
}

/** Keeps a number or a boolean if it is needed. Returns false if it should have another type. */
function takeScalar(
  parent: Parent,
  line: string,
  key: number,
  length: number,
  from: number,
  to: number,
  out: PinoLine,
): boolean {
  const isNumber = line.charCodeAt(from) <= 57
  if (parent === "req") return length !== 3 && length !== 6 && length !== 13
  if (parent === "res") {
    if (length !== 10 || !line.startsWith("statusCode", key)) return true
    out.status = isNumber ? statusIn(Number(line.slice(from, to))) : undefined
    return isNumber
  }
  if (parent === "ratelimit") {
    if (length === 7 && line.startsWith("allowed", key)) {
      allowed = isNumber || line.startsWith("null", from) ? undefined : line.startsWith("true", from)
      return allowed !== undefined
    }
    return !(length === 6 && line.startsWith("policy", key))
  }
  if (length === 4 && line.startsWith("time", key)) {
    out.timeMs = isNumber ? epochTime(numberAt(line, from, to)) : Number.NaN
    return isNumber
  }
  if (length === 12 && line.startsWith("responseTime", key)) {
    out.durationMs = isNumber ? numberAt(line, from, to) : undefined
    return isNumber
  }
  if (length === 3 && line.startsWith("pid", key)) {
    out.pid = isNumber ? numberAt(line, from, to) : undefined
    return isNumber
  }
  return !isNeededText(line, key, length)
}

function isNeededText(line: string, key: number, length: number): boolean {
  switch (length) {
    case 3:
      return line.startsWith("msg", key) || innerOf(line, key, length) !== undefined
    case 5:
      return line.startsWith("reqId", key)
    case 8:
      return line.startsWith("hostname", key)
    case 9:
      return line.startsWith("ratelimit", key)
  }
  return false
}

function textAt(line: string, from: number, to: number): string | undefined {
  return from === to ? undefined : line.slice(from, to)
}

/** Returns the number at a position. Integers of up to 15 digits are read without a substring. */
function numberAt(line: string, from: number, to: number): number {
  if (to - from > 15) return Number(line.slice(from, to))
  let value = 0
  for (let at = from; at < to; at++) {
    const digit = line.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9) return Number(line.slice(from, to))
    value = value * 10 + digit
  }
  return value
}

/** Returns the end of a number without an exponent, of true, false or null; -1 if there is none. */
function scalarEnd(line: string, from: number, first: number): number {
  if (first === 116) return line.startsWith("true", from) ? from + 4 : -1
  if (first === 110) return line.startsWith("null", from) ? from + 4 : -1
  if (first === 102) return line.startsWith("false", from) ? from + 5 : -1
  const start = first === DASH ? from + 1 : from
  let end = digitsEnd(line, start)
  if (end === start || (end > start + 1 && line.charCodeAt(start) === ZERO)) return -1
  if (line.charCodeAt(end) !== DOT) return end
  const fraction = end + 1
  end = digitsEnd(line, fraction)
  return end === fraction ? -1 : end
}

function digitsEnd(line: string, from: number): number {
  let at = from
  for (let code = line.charCodeAt(at); code >= 48 && code <= 57; code = line.charCodeAt(at)) at++
  return at
}
