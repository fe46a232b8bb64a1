import { randomBytes } from "node:crypto"
import { releases } from "../algorithms/kinds.ts"
import { isUnits, type Policy } from "../ground/policy.ts"
import type { Counted, CounterKey } from "../stores/store.ts"
import type { Decision } from "./decision.ts"
import { DecisionRecord, HoldingDecision } from "./decision-record.ts"

/** What an admitted decision took, as a string. Any process with the same rules and store can settle it. */
export interface Reservation {
  /** A string of printable ASCII, about 340 characters for three rules. */
  readonly text: string
  /**
   * Milliseconds within which the reservation must be renewed, because its permits end then. Absent if it holds no
   * permits. Renew after half of this time.
   */
  readonly renewWithinMs?: number
}

/** What a decision took from one counter, with the members of the policy that the rule may change for each request. */
export interface ReservedCounter {
  readonly counter: string
  readonly partition: string
  readonly limit: number
  /** Capacity of a bucket, or 0 without one. */
  readonly burst: number
  /** Units that the rule takes for each unit of the request. */
  readonly unitCost: number
  readonly taken: number
  /** The state right after the units were taken, without its parts. For permits, the start of their window. */
  readonly startMs: number
  readonly current: number
  readonly previous: number
  /** End of the calendar period, or 0 without one. */
  readonly endMs: number
}

/** The content of a reservation's text. */
export interface ReservedUnits {
  readonly service: string
  /** 72 random bits, which stay the same when the reservation is renewed. */
  readonly id: string
  /** The latest time at which the text is accepted, in epoch milliseconds. */
  readonly untilMs: number
  /** For how long each text is accepted, in milliseconds. */
  readonly lifetimeMs: number
  readonly counters: readonly ReservedCounter[]
}

/** For how long a text is accepted, by default and at most, in milliseconds. */
export const RESERVATION_MS = 600_000

const VERSION = 1
const ID_BYTES = 9
/** Most characters of a text. A text of three rules has about 340. */
const MOST_CHARACTERS = 8_192

/**
 * Moves what a decision took out of the decision. The decision can no longer be settled, refunded or released. Returns
 * undefined if nothing is left to move.
 */
export function moveOut(decision: Decision): readonly ReservedCounter[] | undefined {
  const counters = DecisionRecord.joinedFrom(decision).map((part) => {
    const receipt = DecisionRecord.takeReceipt(part)
    const holdings = HoldingDecision.moveHoldings(part)
    if (receipt === undefined && holdings.length === 0) return undefined
    const held = holdings.map(({ policy, partition, permits, startMs = 0 }) =>
      reserved(policy, partition, 1, permits, { startMs, current: permits, previous: 0 }),
    )
    // Units that were taken without the store are not counted there, so they cannot be settled there.
    if (receipt === undefined || receipt.store !== receipt.by.store) return held
    const taken = receipt.ruleChecks.flatMap(({ policy, partition, unitCost, cost }, i) => {
      const { taken = 0, state, after = state } = receipt.answer.checks[i] ?? ({} as Partial<Counted>)
      // Permits come from the holdings, because they may have been released or renewed.
      return after === undefined || taken !== cost || releases(policy)
        ? []
        : [reserved(policy, partition, unitCost, taken, after)]
    })
    return [...taken, ...held]
  })
  const moved = counters.filter((each) => each !== undefined)
  return moved.length === 0 ? undefined : moved.flat()
}

function reserved(
  { counter, limit, burst = 0, periods }: Policy,
  partition: string,
  unitCost: number,
  taken: number,
  { startMs, current, previous }: Counted["state"],
): ReservedCounter {
  const endMs = periods?.find((boundaryMs) => boundaryMs > startMs) ?? 0
  return { counter, partition, limit, burst, unitCost, taken, startMs, current, previous, endMs }
}

/** Returns a new id of a reservation. */
export function newReservationId(): string {
  return randomBytes(ID_BYTES).toString("base64url")
}

/**
 * Returns the text of a reservation: JSON in base64url. If the text would be too long to be read, it leaves out the first
 * counters, whose units stay as they were taken. Permits come last.
 */
export function writeReservation({ service, id, untilMs, lifetimeMs, counters }: ReservedUnits): string {
  const rows = counters.map((each) => MEMBERS.map((name) => each[name]))
  for (;;) {
    const json = JSON.stringify([VERSION, service, id, untilMs, lifetimeMs, rows])
    const text = Buffer.from(json).toString("base64url")
    if (text.length <= MOST_CHARACTERS || rows.length === 0) return text
    rows.splice(0, Math.ceil(rows.length * (1 - MOST_CHARACTERS / text.length)))
  }
}

/** Returns the content of a reservation's text. Undefined if `writeReservation` did not write the text. */
export function readReservation(text: unknown): ReservedUnits | undefined {
  if (typeof text !== "string" || text.length > MOST_CHARACTERS || !/^[\w-]+$/.test(text)) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.from(text, "base64url").toString())
  } catch {
    return undefined
  }
  if (!Array.isArray(parsed) || parsed.length !== 6) return undefined
  const [version, service, id, untilMs, lifetimeMs, rows] = parsed as unknown[]
  const isSound =
    version === VERSION &&
    typeof service === "string" &&
    typeof id === "string" &&
    isUnits(untilMs) &&
    isUnits(lifetimeMs) &&
    lifetimeMs <= RESERVATION_MS &&
    Array.isArray(rows)
  if (!isSound) return undefined
  const counters = rows.map(counterOfRow)
  return counters.every((each) => each !== undefined)
    ? { service, id, untilMs, lifetimeMs, counters }
    : undefined
}

const MEMBERS: readonly (keyof ReservedCounter)[] = [
  ...(["counter", "partition"] as const),
  ...(["limit", "burst", "unitCost", "taken", "startMs", "current", "previous", "endMs"] as const),
]

function counterOfRow(row: unknown): ReservedCounter | undefined {
  if (!Array.isArray(row) || row.length !== MEMBERS.length) return undefined
  const isSound = row.every((value, i) => (i < 2 ? typeof value === "string" : isUnits(value)))
  return isSound ? (Object.fromEntries(MEMBERS.map((name, i) => [name, row[i]])) as never) : undefined
}

/** By how much a mark outlives the texts of its reservation, as a share of their lifetime. */
const MARGIN = 1.1

/**
 * Returns the counter that marks a settled reservation: a single permit, which nobody renews. It is taken before the
 * settlement, so that a second settlement is refused, by any process, for longer than the text is accepted.
 */
export function markOf({ id, lifetimeMs }: ReservedUnits): CounterKey {
  const windowMs = Math.ceil(lifetimeMs * MARGIN)
  const policy = {
    name: "",
    counter: "reservation",
    algorithm: "in-flight",
    limit: 1,
    windowMs,
    align: "epoch",
  } as const
  return { policy, partition: id }
}
