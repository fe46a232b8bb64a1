import type { CounterState } from "../../../algorithms/algorithm.ts"
import { algorithmOf } from "../../../algorithms/kinds.ts"
import { ceilingOf, type Policy } from "../../../ground/policy.ts"
import type { Check, Counted, StoreResult } from "../../store.ts"
import {
  type CallTime,
  detailOf,
  isCountedInPlace,
  isSamePolicy,
  kindOf,
  PolicyTable,
  type RedisRequest,
} from "./script-input.ts"
import { integerAt, type Reply, readReply, stateAt } from "./script-reply.ts"

/** One request of several checks, or equal requests of one check, which are granted in order. */
interface Entry {
  readonly asked: RedisRequest
  /** Of its first check, among the keys of the call. */
  readonly firstKey: number
  times: number
  /** How many of the requests have their answer. */
  answered: number
  /** After all of them, once it has been read. */
  state: CounterState | undefined
}

/** What Redis answered: undefined for a request with a key that holds what is none of ours. */
export interface TakeReply {
  readonly nowMs: number
  /** In the order of the requests; undefined when the call came too late, and nothing was counted. */
  readonly answers: readonly (StoreResult | undefined)[] | undefined
}

/**
 * Entries a call at the most: more of them would hold up Redis for everybody else. However many equal requests one of them
 * stands for, Redis counts them at once.
 */
const MOST_ENTRIES = 64
/** Keys a call at the most, for the same reason; but one entry has room for all of its own. */
const MOST_KEYS = 256

/** Requests that are decided in one call of the script, in order. Equal ones that have one check are merged. */
export class TakeCall {
  readonly keys: string[] = []
  readonly #policies = new PolicyTable()
  readonly #entries: Entry[] = []
  /** For each request its entry. */
  readonly #places: Entry[] = []
  /** By key the entry that asks for it last: only that one may grow, or a later request would be decided too early. */
  #last: Map<string, Entry> | undefined

  /** Adds a request behind the others. Whether there was room for it: a call that is full is to be sent without it. */
  add(asked: RedisRequest): boolean {
    const before = this.#entryLike(asked)
    if (before !== undefined) {
      before.times++
      this.#places.push(before)
      return true
    }
    if (!this.#hasRoomFor(asked)) return false
    const entry: Entry = { asked, firstKey: this.keys.length, times: 1, answered: 0, state: undefined }
    this.#entries.push(entry)
    this.#places.push(entry)
    for (const key of asked.keys) {
      this.keys.push(key)
      this.#last?.set(key, entry)
    }
    return true
  }

  #hasRoomFor({ checks }: RedisRequest): boolean {
    const entries = this.#entries.length
    return entries === 0 || (entries < MOST_ENTRIES && this.keys.length + checks.length <= MOST_KEYS)
  }

  /** The entry that such a request may be merged with. */
  #entryLike(asked: RedisRequest): Entry | undefined {
    // Requests of several checks are not merged, so where there are no others nobody is looked for.
    if (asked.checks.length !== 1 || this.#entries.length === 0) return undefined
    const latest = this.#entries.at(-1) as Entry
    // In a burst of one client: to look for it costs as much as all the rest of this.
    if (isOfOneCounter(asked, latest.asked) && isSame(asked, latest.asked)) return latest
    this.#last ??= lastByKey(this.#entries)
    const last = this.#last.get(asked.keys[0] as string)
    return last !== undefined && isSame(asked, last.asked) ? last : undefined
  }

  /**
   * The script's arguments: a list of numbers in JSON or, for a call of one check that is likely to be counted in place,
   * the few that this takes, of which the script makes the list where it is not enough.
   */
  args(time: CallTime): readonly string[] {
    if (this.keys.length !== 1 || time.isWide) return [this.#input(time)]
    const { asked, times } = this.#entries[0] as Entry
    const { policy, cost } = asked.checks[0] as Check
    const units = cost * times
    if (asked.isPart || !isCountedInPlace(policy, cost, units)) return [this.#input(time)]
    const { untilMs = 0, nowMs } = time
    const { windowMs } = policy
    const args = [
      `${untilMs}`,
      `${windowMs}`,
      `${ceilingOf(policy)}`,
      `${units}`,
      `${kindOf(policy)}`,
      `${times}`,
      `${cost}`,
      `${detailOf(policy)}`,
    ]
    return nowMs === undefined ? args : [...args, `${nowMs}`]
  }

  #input(time: CallTime): string {
    const numbers = [0]
    let entries = 0
    // Where the run of entries that differ in nothing but their keys begins; with several checks each, those.
    let run = 0
    let several: readonly Check[] | undefined
    for (const { asked, times } of this.#entries) {
      const { checks, isPart } = asked
      if (checks.length === 1) {
        const { policy, cost, shadow } = checks[0] as Check
        // Such an entry does not say that it is a shadow one, whose refusals never count.
        const counted = shadow && policy.countRejected === true ? { ...policy, countRejected: false } : policy
        const number = this.#policies.numberOf(counted, isPart)
        // In place of the times there is 0 where a run is of several checks, and where there is none yet.
        if (numbers[run] === times && numbers[run + 2] === number && numbers[run + 3] === cost) {
          numbers[run + 1] = (numbers[run + 1] as number) + 1
          continue
        }
        several = undefined
        run = numbers.push(times, 1, number, cost) - 4
      } else {
        if (several !== undefined && isSameList(checks, several)) {
          numbers[run + 2] = (numbers[run + 2] as number) + 1
          continue
        }
        several = checks
        run = numbers.push(0, checks.length, 1) - 3
        for (const { policy, cost, shadow } of checks) {
          numbers.push(this.#policies.numberOf(policy), cost, shadow ? 1 : 0)
        }
      }
      entries++
    }
    numbers[0] = entries
    return this.#policies.input(time, numbers)
  }

  /** @throws StoreUnavailableError when it is no reply to this call. */
  read(reply: unknown): TakeReply {
    const list = readReply(reply)
    const nowMs = integerAt(list, 0)
    if (list.length === 1) return { nowMs, answers: undefined }
    const lacks = this.#lacksOf(list)
    return { nowMs, answers: this.#places.map((entry) => answerOf(entry, list, lacks, nowMs)) }
  }

  /** By the place of a key, how many times its check was taken, where that is not every time. */
  #lacksOf(list: Reply): ReadonlyMap<number, number> | undefined {
    const end = 1 + this.keys.length
    if (list.length === end) return undefined
    const lacks = new Map<number, number>()
    for (let at = end; at < list.length; at += 2) lacks.set(integerAt(list, at) - 1, integerAt(list, at + 1))
    return lacks
  }
}

/** The answer to the next of the requests that an entry stands for. */
function answerOf(
  entry: Entry,
  list: Reply,
  lacks: ReadonlyMap<number, number> | undefined,
  nowMs: number,
): StoreResult | undefined {
  const { asked, firstKey, times } = entry
  if (asked.checks.length !== 1) return together(asked, firstKey, list, lacks, nowMs)
  const { policy, cost, shadow } = asked.checks[0] as Check
  entry.state ??= stateAt(list, 1 + firstKey, policy, nowMs)
  const { state } = entry
  if (state === undefined) return undefined
  // Of so many that were granted each sees its own count.
  const granted = lacks?.get(firstKey) ?? times
  const nth = ++entry.answered
  if (nth > granted) return { nowMs, granted: shadow, checks: [{ state, taken: 0 }] }
  return {
    nowMs,
    granted: true,
    checks: [{ state: before(state, policy, (granted - nth) * cost, nowMs), taken: cost }],
  }
}

function together(
  { checks }: RedisRequest,
  firstKey: number,
  list: Reply,
  lacks: ReadonlyMap<number, number> | undefined,
  nowMs: number,
): StoreResult | undefined {
  const counted: Counted[] = []
  let granted = true
  for (let i = 0; i < checks.length; i++) {
    const { policy, cost, shadow } = checks[i] as Check
    const state = stateAt(list, 1 + firstKey + i, policy, nowMs)
    if (state === undefined) return undefined
    const isTaken = lacks?.has(firstKey + i) !== true
    if (!isTaken && !shadow) granted = false
    counted.push({ state, taken: isTaken ? cost : 0 })
  }
  return { nowMs, granted, checks: counted }
}

/**
 * Whether a request of one check may be merged with another of the same key. Where refusals count each request leaves a state of its
 * own, so those are not merged.
 */
function isSame(
  { checks: one, isPart }: RedisRequest,
  { checks: other, isPart: isOther }: RedisRequest,
): boolean {
  const check = one[0] as Check
  if (other.length !== 1 || isPart !== isOther) return false
  if (check.policy.countRejected === true || check.policy.algorithm === "penalty") return false
  return isSameCheck(check, other[0] as Check)
}

/** Whether the first check of both is of one counter. */
function isOfOneCounter(one: RedisRequest, other: RedisRequest): boolean {
  const [check, than] = [one.checks[0] as Check, other.checks[0] as Check]
  if (check.policy.counter !== than.policy.counter) return false
  return check.partition === than.partition
}

function lastByKey(entries: readonly Entry[]): Map<string, Entry> {
  const last = new Map<string, Entry>()
  for (const entry of entries) for (const key of entry.asked.keys) last.set(key, entry)
  return last
}

/** Whether both ask for the same, but for the partitions. */
function isSameList(one: readonly Check[], other: readonly Check[]): boolean {
  return one.length === other.length && one.every((check, i) => isSameCheck(check, other[i] as Check))
}

function isSameCheck(one: Check, other: Check): boolean {
  return one.cost === other.cost && one.shadow === other.shadow && isSamePolicy(one.policy, other.policy)
}

/** The state before `later` units were taken by those who came after, in the same instant. */
function before(state: CounterState, policy: Policy, later: number, nowMs: number): CounterState {
  if (later === 0) return state
  return algorithmOf(policy).withoutUnits(state, policy, later, state, nowMs)
}
