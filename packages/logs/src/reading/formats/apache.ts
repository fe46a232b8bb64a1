import { LogError } from "../../log-error.ts"
import { unescapedFormat } from "../escapes.ts"
import { timeResolution } from "../field-sources.ts"
import { CLF_LENGTH, clfTimeReader, epochTime, isoTime } from "../times.ts"
import type { LogFormat } from "./format.ts"
import { formatLineReader, segmentsOf } from "./format-line.ts"
import type { FormatPart, Meaning, Variable } from "./segment.ts"

/**
 * Returns the format of Apache's `LogFormat`, given as the text alone or as the whole directive. Throws LogError if
 * lines of the format cannot be read.
 */
export function apacheFormat(given: string, name: string = given): LogFormat {
  const format = { name, parts: partsOf(formatText(given)) }
  const { variables } = segmentsOf(format)
  return {
    name,
    encoding: "latin1",
    resolutionMs: timeResolution(variables),
    open: (file, map) => formatLineReader(format, file, map),
  }
}

const DIRECTIVE = /%(?:!?\d+(?:,\d+)*)?([<>]?)(?:\{([^}]*)\})?([<>]?)(\^(?:FU|FB|ti|to)|[a-z%])/gi

/** True if the text contains a directive of Apache. */
export function isApacheLine(text: string): boolean {
  return /%[\d!,<>]*(?:\{[^}]*\})?[<>]?[a-z]/i.test(text)
}

/** Returns the text of the format, without the surrounding directive. */
function formatText(given: string): string {
  const [, quoted] = /^\s*(?:LogFormat|CustomLog\s+\S+)\s+"((?:[^"\\]|\\.)*)"/is.exec(given) ?? []
  return unescapedFormat(quoted ?? given)
}

function partsOf(text: string): FormatPart[] {
  const parts: FormatPart[] = []
  let at = 0
  for (const match of text.matchAll(DIRECTIVE)) {
    if (match.index < at) continue
    if (match.index > at) parts.push(text.slice(at, match.index))
    at = match.index + match[0].length
    const [all, before, argument, after, letter = ""] = match
    if (letter === "%") parts.push("%")
    else if (letter === "U" && text.startsWith("%q", at)) {
      at += 2
      parts.push(variable("%U%q", ["target"], { kind: "target" }))
    } else if (letter === "t" && argument === undefined) {
      parts.push("[", timeVariable(all, "%d/%b/%Y:%H:%M:%S %z"), "]")
    } else if (letter === "t") parts.push(timeVariable(all, argument as string))
    else parts.push(variableOf(all, letter, argument, before === ">" || after === ">"))
  }
  if (at < text.length) parts.push(text.slice(at))
  return parts
}

const OF_LETTER: Readonly<Record<string, readonly [name: string, meaning: Meaning]>> = {
  a: ["remote_addr", { kind: "address" }],
  h: ["remote_addr", { kind: "address" }],
  u: ["remote_user", { kind: "user" }],
  r: ["request", { kind: "request" }],
  m: ["request_method", { kind: "method" }],
  U: ["uri", { kind: "path" }],
  s: ["status", { kind: "status" }],
  D: ["request_time", { kind: "duration", unitMs: 1e-3 }],
  p: ["server_port", { kind: "port" }],
}

const DURATION_UNITS: Readonly<Record<string, number>> = { s: 1_000, ms: 1, us: 1e-3 }
/** Directives whose values contain no spaces. */
const WORDS = new Set([..."abBDhHIkLlmOpPsSTvVX"])

function variableOf(text: string, letter: string, argument: string | undefined, isFinal: boolean): Variable {
  const isWord = WORDS.has(letter)
  const own = { text, isWord }
  if (letter === "T") {
    const unitMs = DURATION_UNITS[argument ?? "s"] ?? 1_000
    return { ...own, names: ["request_time"], meaning: { kind: "duration", unitMs } }
  }
  if (argument !== undefined && letter === "i") {
    const name = argument.toLowerCase()
    return { ...own, names: [`http_${name.replaceAll("-", "_")}`], meaning: { kind: "header", name } }
  }
  if (argument !== undefined && letter === "C") {
    return { ...own, names: [`cookie_${argument}`], meaning: { kind: "cookie", name: argument } }
  }
  // `%{c}a` is the address of the connection, which may be the address of a proxy. `%s` is the status before a
  // redirect.
  if (letter === "p" && argument === "remote")
    return { ...own, names: ["remote_port"], meaning: { kind: "port" } }
  const isOther = (letter === "a" && argument !== undefined) || (letter === "s" && !isFinal)
  const [name, meaning] = (isOther ? undefined : OF_LETTER[letter]) ?? []
  return { ...own, names: [name ?? argument ?? letter], meaning: meaning ?? { kind: "other" } }
}

function variable(text: string, names: readonly string[], meaning: Meaning): Variable {
  return { text, names, meaning, isWord: false }
}

const clfTime = clfTimeReader()

/** Formats of `%{FORMAT}t` that can be read, after `%F` and `%T` have been expanded. */
const TIMES: Readonly<Record<string, readonly [resolutionMs: number, read: (text: string) => number]>> = {
  "%d/%b/%Y:%H:%M:%S %z": [1_000, (text) => (text.length === CLF_LENGTH ? clfTime(text, 0) : Number.NaN)],
  "%Y-%m-%dT%H:%M:%S%z": [1_000, isoTime],
  "%s": [1_000, (text) => epochDigits(text, 1_000)],
  sec: [1_000, (text) => epochDigits(text, 1_000)],
  msec: [1, (text) => epochDigits(text, 1)],
  usec: [1, (text) => epochDigits(text, 1e-3)],
}

/** Returns the variable for a time directive. Apache logs when a request began, unless the format says "end:". */
function timeVariable(text: string, argument: string): Variable {
  const isEnd = argument.startsWith("end:")
  const format = argument
    .replace(/^(?:begin|end):/, "")
    .replace("%F", "%Y-%m-%d")
    .replace("%T", "%H:%M:%S")
  const time = TIMES[format]
  if (time === undefined) {
    throw new LogError(
      `The time ${text} cannot be read: use %t, %{sec}t, %{msec}t, %{usec}t or %{%Y-%m-%dT%H:%M:%S%z}t`,
    )
  }
  const [resolutionMs, read] = time
  const isLong = format.includes(" ")
  return {
    text,
    names: ["time"],
    meaning: { kind: "time", read, resolutionMs, isEnd },
    isWord: !isLong,
    length: isLong ? CLF_LENGTH : undefined,
  }
}

function epochDigits(text: string, unitMs: number): number {
  return /^\d{9,17}$/.test(text) ? epochTime(Number(text) * unitMs) : Number.NaN
}
