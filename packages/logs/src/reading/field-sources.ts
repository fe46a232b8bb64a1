import { LogError } from "../log-error.ts"
import { mapTarget } from "./field-map.ts"
import type { FieldMap } from "./formats/format.ts"
import type { Meaning, Variable } from "./formats/segment.ts"
import type { LoggedFields } from "./logged-fields.ts"
import { arrivalTime, textTime } from "./times.ts"

type Picks = (readonly [name: string, index: number])[]

/** The position of each record member among the values of a line. Each number is the index of a variable. */
export interface FieldSources {
  readonly logged: LoggedFields
  /** Returns when the request arrived in epoch milliseconds; NaN if the line contains no valid time. */
  timeMs(values: readonly string[]): number
  readonly address: number | undefined
  readonly request: number | undefined
  readonly method: number | undefined
  readonly target: number | undefined
  readonly status: number | undefined
  readonly headers: readonly (readonly [name: string, index: number])[]
  readonly cookies: readonly (readonly [name: string, index: number])[]
  readonly named: readonly (readonly [name: string, index: number])[]
}

/**
 * Returns the field sources of a format with these variables. Throws LogError if none of the variables is a time, or
 * if `map` names a variable that the format lacks.
 */
export function fieldSources(variables: readonly Variable[], map: FieldMap, format: string): FieldSources {
  const ofKind = (kind: Meaning["kind"]): number | undefined => {
    const index = variables.findIndex(({ meaning }) => meaning.kind === kind)
    return index === -1 ? undefined : index
  }
  const mapped = new Map<string, number>()
  const headers: Picks = []
  const cookies: Picks = []
  const named: Picks = []
  const add = (kind: "header" | "cookie" | "named", name: string, index: number): void => {
    const list = kind === "header" ? headers : kind === "cookie" ? cookies : named
    const at = list.findIndex(([other]) => other === name)
    list.splice(at === -1 ? list.length : at, 1, [name, index])
  }
  variables.forEach(({ meaning }, index) => {
    if (meaning.kind === "header" || meaning.kind === "cookie") add(meaning.kind, meaning.name, index)
  })
  for (const [field, source] of Object.entries(map)) {
    const index = variables.findIndex(({ text, names }) => text === source || names.includes(source))
    if (index === -1) throw noVariable(field, source, variables, format)
    const target = mapTarget(field)
    if (target.kind === "header" || target.kind === "cookie" || target.kind === "named") {
      add(target.kind, target.name, index)
    } else mapped.set(target.kind, index)
  }
  const time = mapped.get("time") ?? bestTime(variables)
  if (time === undefined) {
    throw new LogError(
      `The format ${JSON.stringify(format)} has no time: it needs $msec, $time_iso8601 or $time_local (nginx), or %t (Apache)`,
    )
  }
  const method = mapped.get("method")
  const target = mapped.get("url")
  const request = method === undefined && target === undefined ? ofKind("request") : undefined
  const sources = {
    address: mapped.get("ip") ?? ofKind("address"),
    request,
    method: method ?? ofKind("method"),
    target: target ?? ofKind("target") ?? ofKind("path"),
    status: mapped.get("status") ?? ofKind("status"),
    headers,
    // If the cookie header is logged, the core reads cookies from this header.
    cookies: headers.some(([name]) => name === "cookie") ? [] : cookies,
    named,
  }
  const logged = loggedFields(sources, variables)
  return { ...sources, logged, timeMs: timeSource(variables, time) }
}

function loggedFields(
  { address, request, method, target, headers, cookies, named }: Omit<FieldSources, "logged" | "timeMs">,
  variables: readonly Variable[],
): LoggedFields {
  const pathOnly = target !== undefined && variables[target]?.meaning.kind === "path"
  const hasCookies = headers.some(([name]) => name === "cookie")
  return {
    names: [
      ...(address === undefined ? [] : ["ip"]),
      ...(request === undefined && method === undefined ? [] : ["method"]),
      ...headers.map(([name]) => `header:${name}`),
      ...cookies.map(([name]) => `cookie:${name}`),
      ...named.map(([name]) => name),
    ],
    hasQuery: request !== undefined || (target !== undefined && !pathOnly),
    hasCookies,
  }
}

/** Returns the index of the time with the finest resolution; undefined if the format contains no time. */
function bestTime(variables: readonly Variable[]): number | undefined {
  const resolution = (index: number): number => resolutionOf(variables[index])
  const times = variables.flatMap(({ meaning }, index) => (meaning.kind === "time" ? [index] : []))
  return times.sort((a, b) => resolution(a) - resolution(b))[0]
}

/** Returns the resolution of a format with these variables in milliseconds. */
export function timeResolution(variables: readonly Variable[]): number | undefined {
  const index = bestTime(variables)
  return index === undefined ? undefined : resolutionOf(variables[index])
}

function resolutionOf(variable: Variable | undefined): number {
  return variable?.meaning.kind === "time" ? variable.meaning.resolutionMs : 1
}

/**
 * Returns a function that computes when a request arrived. If the server logs the end of the request and its
 * duration, the duration is subtracted. If the server logs the end in whole seconds, whole seconds are subtracted,
 * because fractions would suggest a precision that the time lacks.
 */
function timeSource(variables: readonly Variable[], time: number): FieldSources["timeMs"] {
  const meaning = variables[time]?.meaning as Meaning
  if (meaning.kind !== "time") return (values) => textTime(values[time] as string)
  const duration = meaning.isEnd ? variables.findIndex((each) => each.meaning.kind === "duration") : -1
  const taken = variables[duration]?.meaning
  if (taken?.kind !== "duration") return (values) => meaning.read(values[time] as string)
  const { unitMs } = taken
  return (values) =>
    arrivalTime(meaning.read(values[time] as string), durationMs(values[duration] as string, unitMs, meaning))
}

function durationMs(
  text: string,
  unitMs: number,
  { resolutionMs }: { readonly resolutionMs: number },
): number {
  if (text === "-" || text === "") return 0
  const ms = /^\d{1,12}(?:\.\d{1,9})?$/.test(text) ? Number(text) * unitMs : Number.NaN
  return Math.round(ms / resolutionMs) * resolutionMs
}

function noVariable(field: string, source: string, variables: readonly Variable[], format: string): LogError {
  const names = variables.map(({ names, text }) => names[0] ?? text)
  return new LogError(
    `--map ${field}=${source}: the format ${JSON.stringify(format)} has no ${JSON.stringify(source)}; it has ${names.join(", ")}`,
  )
}
