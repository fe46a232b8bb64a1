import { parseDuration } from "./duration.ts"
import { show, suggestion } from "./show.ts"

/** Words that other software uses for a behavior, each with the word that Sluice uses. */
const SYNONYMS: Readonly<Record<string, string>> = {
  open: "allow",
  "fail-open": "allow",
  closed: "deny",
  close: "deny",
  "fail-closed": "deny",
}
/** Matches a calendar period, such as "month", "1 month", "per month", "months" or "monthly". */
const PERIOD = /^(?:(?:1|per|every|an?) )?(day|dai|week|month|year)(?:s|ly)?$/
/** Periods whose length varies, with the days that are closest to them if there is no calendar. */
const VARYING: Readonly<Record<string, number>> = { month: 30, year: 365 }
const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
/** Matches a string that contains both a limit and its window: "5/minute" or "5 requests per minute". */
const PER = /^(\d+) *(?:[a-z]+ +)?(?:\/|per) *(\d* *[a-z]+)$/i

/**
 * Returns what to write instead of a value of another type or spelling, such as `; it is a string, use the number
 * 100`. The hint is for a user who is sure that the value is right. Returns an empty string if the list of accepted
 * values is sufficient. `noun` and `accepted` are the parts of the message about the value.
 */
export function hintFor(given: unknown, noun: string, accepted: string): string {
  const hint = find(given, noun, accepted)
  return hint === undefined ? "" : `; ${hint}`
}

function find(given: unknown, noun: string, accepted: string): string | undefined {
  if (typeof given === "string") return ofText(given, noun, accepted)
  if (typeof given === "function") {
    if (noun === "a cost") return 'a function is "cost" of the limiter, not of a rule'
    if (noun === "trustedProxies") return "use a field instead, such as (req) => addressGroup(req.ip)"
    return /store|rules|source/.test(noun) ? "call it, and pass what it returns" : undefined
  }
  if (typeof given === "number") {
    if (given === 0 && noun === "an anchor") return "use 1 for the first day, or 7 for Sunday"
    if (Number.isNaN(given) && /number/.test(accepted))
      return "it was computed from a missing value or from text"
    if (noun === "a limit" && given === Number.POSITIVE_INFINITY && !/allow/.test(accepted))
      return "leave the rule out to have no limit"
    if (/^(?:a list|a non-empty string)/.test(accepted)) {
      return `use ${accepted.startsWith("a list") ? `[${given}]` : `"${given}"`}`
    }
  }
  if (noun === "a path pattern" && Array.isArray(given)) return "give each path a separate rule"
  if (given === true && noun === "a header dialect") return "leave it out for the default headers"
  if (given === true && /number of proxies/.test(accepted)) return "use their number, such as 1"
  return undefined
}

function ofText(given: string, noun: string, accepted: string): string | undefined {
  const text = given.trim().toLowerCase()
  const [, limit, unit = ""] = PER.exec(text) ?? []
  if (limit !== undefined && /limit|rate/.test(noun)) {
    const per = periodOf(unit)
    if (VARYING[per] !== undefined) return `use "limit" ${limit} and "per" "${per}"`
    return `use "limit" ${limit} and "window" "${/\d/.test(unit) ? unit : `1 ${unit}`}"`
  }
  const period = periodOf(text)
  if (noun === "a calendar period" && period !== "") return `use "${period}"`
  if (noun === "a unit" && VARYING[period] !== undefined)
    return `use "limit" and "per": "${period}" instead of a rate`
  if (noun === "a window" && VARYING[period] !== undefined)
    return `use "per": "${period}" instead for calendar ${period}s, or "${VARYING[period]} days"`
  if (noun === "an anchor") return ofAnchor(text)
  if (noun === "a time zone") return ofTimeZone(text)
  if (/^a (?:window|duration)$/.test(noun)) {
    if (/^\d+$/.test(text)) return `use "${text} seconds", or "${text} ms"`
    const rest = text
      .replace(/^(?:per|every|an?) /, "")
      .replace(
        /^(?:(\d+) ?)?(month|year)s?$/,
        (_, count = 1, unit) => `${count * (VARYING[unit] as number)} days`,
      )
    const length = /^\d/.test(rest) ? rest : `1 ${rest}`
    return rest !== text && parseDuration(length) !== undefined ? `use "${length}"` : undefined
  }
  if (/number/.test(accepted) && !accepted.startsWith("a string")) {
    if (/^0\d+$/.test(text)) return ofLeadingZero(text)
    const number = /^\d+$|^\d{1,3}(?:[,_]\d{3})+$/.test(text) ? Number(text.replace(/[_,]/g, "")) : -1
    const least = /from 0/.test(accepted) ? 0 : 1
    if (number >= least && Number.isSafeInteger(number)) return `it is a string, use the number ${number}`
    const ms = /milliseconds/.test(accepted) ? parseDuration(text) : undefined
    if (ms !== undefined) return `use the number ${ms}`
  }
  if (accepted === "true or false" && /^(?:true|yes|on|false|no|off)$/.test(text)) {
    return `it is a string, use ${/^(?:t|y|on)/.test(text)}`
  }
  if (noun === "a match" && text.startsWith("/")) return `use { path: ${show(given)} }`
  if (/^a list|, or a list of their/.test(accepted) && text !== "*") {
    return `use [${given.split(/ *, */).map(show).join(", ")}]`
  }
  if (!/^"[^"]+"(?:, "[^"]+")+$/.test(accepted)) return undefined
  const names = [...accepted.matchAll(/"([^"]+)"/g)].map(([, name]) => name as string)
  const here = SYNONYMS[text] ?? ""
  if (names.includes(here)) return `use "${here}"`
  // Suggest no name if the text is a part of several names.
  return names.filter((name) => name.includes(text)).length > 1
    ? undefined
    : suggestion(given, names).slice(2) || undefined
}

/** Returns the calendar period that the text names, or an empty string. */
function periodOf(text: string): string {
  return PERIOD.exec(text)?.[1]?.replace("dai", "day") ?? ""
}

/** Suggests the number of a weekday, of the last day of a month, or of a day such as "15th". */
function ofAnchor(text: string): string | undefined {
  const weekday = WEEKDAYS.findIndex((day) => day === text || day.slice(0, 3) === text) + 1
  if (weekday > 0) return `use ${weekday} with "per": "week"`
  if (text.startsWith("last")) return "use 31 for the last day of each month"
  const [, day] = /^(\d{1,2})(?:st|nd|rd|th)$/.exec(text) ?? []
  return day === undefined ? undefined : `use ${day}`
}

/** Suggests the zone of a city, such as "Europe/Berlin" for "berlin", or the zone with the closest name. */
function ofTimeZone(text: string): string | undefined {
  const names = ["UTC", ...Intl.supportedValuesOf("timeZone")]
  const ofCity = names.find((name) => name.toLowerCase().endsWith(`/${text.replaceAll(" ", "_")}`))
  if (ofCity !== undefined) return `use "${ofCity}"`
  const closest = suggestion(text, names).slice(2)
  if (closest !== "") return closest
  // An offset such as "UTC+1", or an abbreviation such as "PDT".
  return /^[a-z]{0,4}(?:[+-]\d.*)?$/.test(text)
    ? "use the zone of a city, which includes its summer time"
    : undefined
}

/**
 * Returns both possible values of digits after a zero. YAML 1.1 parses the digits as an octal number, and YAML 1.2 as a
 * decimal number.
 */
function ofLeadingZero(digits: string): string {
  const decimal = Number(digits)
  const octal = /[89]/.test(digits) ? decimal : Number.parseInt(digits, 8)
  return `it begins with 0, write ${octal === decimal ? decimal : `${decimal}, or ${octal} if it is octal`}`
}
