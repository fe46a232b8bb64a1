import {
  algorithmOf,
  type Check,
  type Counted,
  type CounterState,
  type Policy,
  type StoreResult,
} from "@sluice/core/stores"
import { packedArgs, packedReply } from "./packed-call.ts"
import {
  type CallTime,
  isCountedInPlace,
  isSamePolicy,
  PolicyTable,
  type RedisRequest,
} from "./script-input.ts"
import { integerAt, type Reply, readReply, stateAt } from "./script-reply.ts"

/** One request of several checks, or equal requests of one check that are granted in order. */
interface Entry {
  readonly asked: RedisRequest
  /** Index of the entry's first key among the keys of the call. */
  readonly firstKey: number
  times: number
  /** Number of requests that have received their reply. */
  answered: number
  /** The counter's state after all of the requests, once the reply has been read. */
  state: CounterState | undefined
}

/** The reply to a call of the take script. */
export interface TakeReply {
  readonly nowMs: number
  /**
   * Replies in the order of the requests; undefined if the call reached Redis too late, so that nothing was counted.
   * The reply to a request is undefined if one of its keys has a value that these scripts did not write.
   */
  readonly answers: readonly (StoreResult | undefined)[] | undefined
}

/**
 * Most entries per call. More of them would block Redis for other clients. An entry may stand for any number of equal
 * requests, because Redis counts them together.
 */
const MOST_ENTRIES = 64
/** Most keys per call, for the same reason. The first entry may have more keys. */
const MOST_KEYS = 256

/** Requests that one call of the script decides, in order. Equal requests of one check are merged. */
export class TakeCall {
  readonly keys: string[] = []
  readonly #entries: Entry[] = []
  /** The entry of each request, in the order of the requests. */
  readonly #places: Entry[] = []
  /**
   * The last entry for each partition. A request may be merged only with the last entry; otherwise it would be
   * decided before earlier requests. Entries are not stored by key, because a key is longer, and V8 would have to
   * concatenate and hash it.
   */
  #last: Map<string, Entry> | undefined
  /** The time arguments of the call, if it has the shorter form. */
  #packedAt: CallTime | undefined

  /**
   * Adds a request after the others. Returns false if the call is full, so that the request must wait for the next
   * call.
   */
  add(asked: RedisRequest): boolean {
    const before = this.#entryLike(asked)
    if (before !== undefined) {
      before.times++
      this.#places.push(before)
      return true
    }
    const entries = this.#entries.length
    const hasRoom = entries < MOST_ENTRIES && this.keys.length + asked.checks.length <= MOST_KEYS
    if (entries > 0 && !hasRoom) return false
    const entry: Entry = { asked, firstKey: this.keys.length, times: 1, answered: 0, state: undefined }
    this.#entries.push(entry)
    this.#places.push(entry)
    for (const key of asked.keys) this.keys.push(key)
    if (this.#last !== undefined) setLast(this.#last, entry)
    return true
  }

  /** Returns the entry with which the request may be merged. */
  #entryLike(asked: RedisRequest): Entry | undefined {
    // Never merge requests of several checks.
    if (asked.checks.length !== 1 || this.#entries.length === 0) return undefined
    const latest = this.#entries.at(-1) as Entry
    // A shortcut for bursts of one client, because the lookup below takes as long as the rest of this method.
    if (isSame(asked, latest.asked)) return latest
    if (this.#last === undefined) {
      this.#last = new Map()
      for (const entry of this.#entries) setLast(this.#last, entry)
    }
    const last = this.#last.get((asked.checks[0] as Check).partition)
    return last !== undefined && isSame(asked, last.asked) ? last : undefined
  }

  /**
   * Returns the script's arguments: a list of numbers in JSON. A call of one check that is likely to be counted in
   * place has a shorter form.
   */
  args(time: CallTime): readonly string[] {
    if (this.keys.length !== 1 || time.isWide) return [this.#input(time)]
    const { asked, times } = this.#entries[0] as Entry
    const { policy, cost } = asked.checks[0] as Check
    if (asked.isPart || !isCountedInPlace(policy, cost, cost * times)) return [this.#input(time)]
    this.#packedAt = time
    return packedArgs(policy, cost, times, time)
  }

  #input(time: CallTime): string {
    const policies = new PolicyTable()
    const numbers = [0]
    let entries = 0
    // The index of the current run of entries that differ only in their keys. If each entry has several checks,
    // `several` contains them.
    let run = 0
    let several: readonly Check[] | undefined
    for (const { asked, times } of this.#entries) {
      const { checks, isPart } = asked
      if (checks.length === 1) {
        const { policy, cost, shadow } = checks[0] as Check
        // An entry of one check does not contain `shadow`, so set `countRejected` to false instead: refusals of
        // shadow checks never count.
        const counted = shadow && policy.countRejected === true ? { ...policy, countRejected: false } : policy
        const number = policies.numberOf(counted, isPart)
        // `numbers[run]` is 0, not `times`, for a run of several checks and before the first run.
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
          numbers.push(policies.numberOf(policy), cost, shadow ? 1 : 0)
        }
      }
      entries++
    }
    numbers[0] = entries
    return policies.input(time, numbers)
  }

  /**
   * Returns the result of each request from a script's reply.
   * @throws StoreUnavailableError if the reply cannot be a reply to this call.
   */
  read(reply: unknown): TakeReply {
    const list = this.#packedAt === undefined ? readReply(reply) : packedReply(reply, this.#packedAt)
    const nowMs = integerAt(list, 0)
    if (list.length === 1) return { nowMs, answers: undefined }
    const lacks = this.#lacksOf(list)
    return { nowMs, answers: this.#places.map((entry) => answerOf(entry, list, lacks, nowMs)) }
  }

  /**
   * Returns how many times each check was granted, by the index of its key. Omits checks that were granted every time.
   */
  #lacksOf(list: Reply): ReadonlyMap<number, number> | undefined {
    const end = 1 + this.keys.length
    if (list.length === end) return undefined
    const lacks = new Map<number, number>()
    for (let at = end; at < list.length; at += 2) lacks.set(integerAt(list, at) - 1, integerAt(list, at + 1))
    return lacks
  }
}

/** Returns the result of the next request of an entry. */
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
  // Each granted request gets the count after its own units, not the count after the units of all requests.
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
 * True if a request of one check may be merged with another request. Requests are not merged if refusals count,
 * because each request then leaves a different state.
 */
function isSame(one: RedisRequest, other: RedisRequest): boolean {
  if (!isOfOneCounter(one, other) || other.checks.length !== 1 || one.isPart !== other.isPart) return false
  const check = one.checks[0] as Check
  if (check.policy.countRejected === true || check.policy.algorithm === "penalty") return false
  return isSameCheck(check, other.checks[0] as Check)
}

/** True if the first checks of both requests use the same counter. */
function isOfOneCounter(one: RedisRequest, other: RedisRequest): boolean {
  const [check, than] = [one.checks[0] as Check, other.checks[0] as Check]
  if (check.policy.counter !== than.policy.counter) return false
  return check.partition === than.partition
}

function setLast(last: Map<string, Entry>, entry: Entry): void {
  for (const { partition } of entry.asked.checks) last.set(partition, entry)
}

/** True if the two requests differ only in their partitions. */
function isSameList(one: readonly Check[], other: readonly Check[]): boolean {
  return one.length === other.length && one.every((check, i) => isSameCheck(check, other[i] as Check))
}

function isSameCheck(one: Check, other: Check): boolean {
  return one.cost === other.cost && one.shadow === other.shadow && isSamePolicy(one.policy, other.policy)
}

/** Returns the state before later requests took `later` units at the same time. */
function before(state: CounterState, policy: Policy, later: number, nowMs: number): CounterState {
  if (later === 0) return state
  return algorithmOf(policy).withoutUnits(state, policy, later, state, nowMs)
}
