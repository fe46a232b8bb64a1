import { OUTCOMES, SECONDS, SLOTS } from "../recorder/snapshot.ts"

/** Returns whether a value that another program may have written has the expected shape. */
type SnapshotCheck = (value: unknown) => boolean

/** Shortly before the latest time that `Date` can express. Larger numbers, such as 1e999 in JSON, are never meant. */
const LARGEST = 8.63e15
/** Counts are 32-bit integers, so that a few wrong ones do not hide the true sums of all processes. */
const MOST = 2 ** 32
const LONGEST_TEXT = 10_000

const number: SnapshotCheck = (value) => typeof value === "number" && value >= 0 && value <= LARGEST
const numberOrNull: SnapshotCheck = (value) => value === null || number(value)
const count: SnapshotCheck = (value) => number(value) && Number.isInteger(value) && (value as number) < MOST
const text: SnapshotCheck = (value) => typeof value === "string" && value.length <= LONGEST_TEXT
/** A lone surrogate cannot be part of a URL, but the page has one for each rule. */
const name: SnapshotCheck = (value) => text(value) && !/\p{Cs}/u.test(value as string)
const boolean: SnapshotCheck = (value) => typeof value === "boolean"

const optional = (shape: SnapshotCheck): SnapshotCheck => {
  return (value) => value === undefined || shape(value)
}
const list = (shape: SnapshotCheck, most: number): SnapshotCheck => {
  return (value) => Array.isArray(value) && value.length <= most && value.every(shape)
}
const record = (shape: SnapshotCheck): SnapshotCheck => {
  return (value) => object({})(value) && Object.values(value as object).every(shape)
}
const object = (members: Readonly<Record<string, SnapshotCheck>>): SnapshotCheck => {
  const entries = Object.entries(members)
  return (value) =>
    typeof value === "object" &&
    value !== null &&
    entries.every(([name, shape]) => shape((value as Record<string, unknown>)[name]))
}
/** A shape of several members. */
const each = (shape: SnapshotCheck, names: readonly string[]): Record<string, SnapshotCheck> => {
  return Object.fromEntries(names.map((name) => [name, shape]))
}
const counts = (most: number): SnapshotCheck => object(each(optional(list(count, most)), OUTCOMES))

const refused = object({
  ...each(text, ["key", "reason"]),
  ...each(count, ["refusals", "error"]),
  ...{ lastMs: number, untilMs: numberOrNull },
})
const rule = object({
  ...{
    rule: name,
    shadow: boolean,
    seconds: counts(SECONDS),
    slots: counts(SLOTS),
    refusedClients: optional(count),
    registers: optional(text),
  },
  ...{ refused: list(refused, 256), unlistedRefusals: count },
  busy: list(object({ key: text, requests: count }), 32),
})
const refusal = object({
  ...each(text, ["rule", "key", "reason", "text"]),
  ...{ atMs: number, retryAfterMs: numberOrNull },
})
const status = object({
  ...{ service: text, waiting: number, inFlight: number, openBreakers: optional(number) },
  isShared: optional(boolean),
  ...each(optional(record(number)), ["leases", "writeBack"]),
  ...each(optional(record(record(number))), ["permits", "mirrors"]),
})
const rulesStatus = object({
  ...each(optional(number), ["version", "loadedAtMs"]),
  ...{ isStale: boolean, problems: list(text, 10_000) },
})

/** Returns whether a value has the shape of an ActivitySnapshot, within the bounds of its lists and numbers. */
export const isSnapshot: SnapshotCheck = object({
  ...{ instance: text, service: name },
  ...each(number, ["sinceMs", "atMs"]),
  ...{ rules: list(rule, 201), refusals: list(refusal, 200), status, rulesStatus },
})
