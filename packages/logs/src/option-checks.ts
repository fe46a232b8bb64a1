import { mustBe, type OptionCheck } from "@sluice/core/kit"

type Test = (value: unknown) => boolean
type Checks = Readonly<Record<string, OptionCheck>>

/** Returns a check that accepts every value for which a test returns true. `accepted` describes them: "a string". */
const only = (accepted: string, isValid: Test): OptionCheck => mustBe("valid", accepted, isValid)

const isText: Test = (value) => typeof value === "string"
const isFrom = (least: number, most: number) => (value: unknown) =>
  Number.isFinite(value) && (value as number) >= least && (value as number) <= most
/** Also tests the holes of an array, which count as undefined. */
const isListOf = (isValid: Test, fewest: number) => (value: unknown) =>
  Array.isArray(value) && value.length >= fewest && Array.from(value).every(isValid)
/** False for a `Map`, because its entries are not members. */
const isTextObject: Test = (value) =>
  Object.prototype.toString.call(value) === "[object Object]" && Object.values(Object(value)).every(isText)
const hasMembers = (members: Readonly<Record<string, Test>>) => (value: unknown) =>
  Object.entries(members).every(([name, isValid]) => isValid(Object(value)[name]))

/** Accepts every value, because the code that uses the option checks it. */
const later: OptionCheck = () => undefined
const text = only("a string", isText)
const someTexts = only("an array of one or more strings", isListOf(isText, 1))
const flag = only("true or false", (value) => typeof value === "boolean")
const bound = only("a number or a string", (value) => isText(value) || typeof value === "number")
const multiple = only("a number of 1 or more", isFrom(1, Number.MAX_VALUE))
const address = { trustedProxies: later, clientIpHeader: later, ipv6Prefix: later }

/** Accepts an array of strings. */
export const texts: OptionCheck = only("an array of strings", isListOf(isText, 0))

/** Accepts an array. The core checks the rules in the array. */
export const ruleList: OptionCheck = only("an array of rules", Array.isArray)

/** Accepts a function. A class is not accepted, because it cannot be called. */
export const opener: OptionCheck = only("a function that returns logs", (value) => {
  return typeof value === "function" && !/^class\b/.test(String(value))
})

/** Accepts logs that have a summary and can be read. */
export const openLogs: OptionCheck = only("the logs that readLogs() returns", (value) => {
  const { summary, [Symbol.asyncIterator]: iterate } = Object(value)
  return typeof iterate === "function" && Array.isArray(summary?.files)
})

/** The checks of `ReadLogOptions`. */
export const READ_CHECKS: Checks = {
  format: text,
  map: only("an object whose values are strings", isTextObject),
  reorderMs: only("0 or a positive number of milliseconds", isFrom(0, Number.MAX_VALUE)),
  withoutStatus: only("an array of numbers from 100 to 599", isListOf(isFrom(100, 599), 0)),
}

/** The checks of `ReplayLogsOptions`. */
export const REPLAY_CHECKS: Checks = {
  ...{ rules: later, service: later, maxKeys: later, algorithms: texts, hashKeys: flag, skipUnjudged: flag },
  ...{ maxRefused: bound, maxRefusedClients: bound, maxNewlyRefused: bound },
  against: only("an object with name and rules", hasMembers({ name: isText, rules: Array.isArray })),
  never: only("an object with the strings name and text", hasMembers({ name: isText, text: isText })),
  ...{ slightly: multiple, far: multiple, ...address },
}

/** The checks of `SuggestOptions`. */
export const SUGGEST_CHECKS: Checks = {
  ...{ by: someTexts, windows: someTexts, timeZone: text, algorithm: text, capacity: text, hashKeys: flag },
  refuseAtMost: only("a number from 0 to 1", isFrom(0, 1)),
  maxClients: only("a number from 1000 to 10000000", isFrom(1_000, 10_000_000)),
  ...{ matchFrom: ruleList, ...address },
}
