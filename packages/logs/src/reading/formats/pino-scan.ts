import { epochTime, isoTime } from "../times.ts"
import { statusIn } from "./json-value.ts"
import type { PinoLine } from "./pino-line.ts"

const QUOTE = 34
const COMMA = 44
const DASH = 45
const DOT = 46
const ZERO = 48
const NINE = 57
const COLON = 58
const OPEN = 123
const CLOSE = 125

/** The object whose members are being read. */
type Parent = "line" | "req" | "res" | "ratelimit"

/** The members that the scan reads. */
const MEMBERS = {
  line: ["time", "msg", "reqId", "hostname", "pid", "responseTime", "req", "res", "ratelimit"],
  req: ["url", "method", "remoteAddress"],
  res: ["statusCode"],
  ratelimit: ["policy", "allowed"],
} as const satisfies Record<Parent, readonly string[]>
type Member = (typeof MEMBERS)[Parent][number]

/** The members of each object by the length of their names, because the length alone excludes most other names. */
const BY_LENGTH: Readonly<Record<Parent, readonly (readonly Member[])[]>> = {
  line: byLength(MEMBERS.line),
  req: byLength(MEMBERS.req),
  res: byLength(MEMBERS.res),
  ratelimit: byLength(MEMBERS.ratelimit),
}

function byLength(names: readonly Member[]): readonly (readonly Member[])[] {
  return Array.from({ length: 16 }, (_, length) => names.filter((name) => name.length === length))
}

/**
 * Scans a line of pino. Returns false if anything is unusual: an escape, an array, a deeper object, a member of
 * another type, or invalid JSON. The caller then parses the line. A failed scan may still have changed members of
 * `out`.
 *
 * A client cannot forge a member: no accepted string contains an escape, so each string ends at its next quote.
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
    const member = memberAt(parent, line, key, keyEnd - key)
    const value = keyEnd + 2
    const first = line.charCodeAt(value)
    if (first === OPEN) {
      if (member !== "req" && member !== "res" && member !== "ratelimit") return false
      parent = member
      enter(member, out)
      at = value + 1
      continue
    }
    if (first === QUOTE) {
      at = line.indexOf('"', value + 1) + 1
      if (at === 0 || (member !== undefined && !takeText(member, line, value + 1, at - 1, out))) return false
    } else {
      at = scalarEnd(line, value, first)
      if (at === -1 || (member !== undefined && !takeScalar(member, line, value, at, out))) return false
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

function memberAt(parent: Parent, line: string, key: number, length: number): Member | undefined {
  const names = BY_LENGTH[parent][length]
  if (names === undefined) return undefined
  for (let at = 0; at < names.length; at++) {
    const name = names[at] as Member
    if (line.startsWith(name, key)) return name
  }
  return undefined
}

// The verdict is only complete at the end of `ratelimit`, so its members are stored here until then.
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

/** Resets the members of an earlier object with the same name, because `JSON.parse` also uses the last one. */
function enter(member: "req" | "res" | "ratelimit", out: PinoLine): void {
  if (member === "req") {
    out.hasRequest = true
    out.method = undefined
    out.url = undefined
    out.address = undefined
  } else if (member === "res") out.status = undefined
  else {
    policy = undefined
    allowed = undefined
  }
}

function leaveRatelimit(out: PinoLine): boolean {
  if (policy === undefined || allowed === undefined) return false
  out.live = { allowed, policy }
  return true
}

/** Keeps a string. Returns false if the member must have another type. */
function takeText(member: Member, line: string, from: number, to: number, out: PinoLine): boolean {
  const text = from === to ? undefined : line.slice(from, to)
  switch (member) {
    case "url":
      out.url = text
      return true
    case "method":
      out.method = text
      return true
    case "remoteAddress":
      out.address = text
      return true
    case "msg":
      out.message = text
      return true
    case "reqId":
      out.reqId = text
      return true
    case "hostname":
      out.hostname = text
      return true
    case "policy":
      policy = text ?? ""
      return true
    case "time":
      out.timeMs = isoTime(text ?? "")
      return !Number.isNaN(out.timeMs)
  }
  return false
}

/** Stores a number or a boolean. Returns false if the member must have another type. */
function takeScalar(member: Member, line: string, from: number, to: number, out: PinoLine): boolean {
  const first = line.charCodeAt(from)
  if (member === "allowed") {
    allowed = line.startsWith("true", from)
    return allowed || line.startsWith("false", from)
  }
  if (first > NINE) return false
  const value = numberAt(line, from, to)
  switch (member) {
    case "time":
      out.timeMs = epochTime(value)
      return true
    case "pid":
      out.pid = value
      return true
    case "responseTime":
      out.durationMs = value
      return true
    case "statusCode":
      out.status = statusIn(value)
      return true
  }
  return false
}

/** Returns the number at a position. Integers of up to 15 digits are read without a substring. */
function numberAt(line: string, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at++) {
    const digit = line.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9 || at - from > 14) return Number(line.slice(from, to))
    value = value * 10 + digit
  }
  return value
}

/** Returns the end of a number without an exponent, of true, false or null; -1 if there is no such value. */
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
  for (let code = line.charCodeAt(at); code >= ZERO && code <= NINE; code = line.charCodeAt(at)) at++
  return at
}
