import { memoryStore, type Store } from "@sluice/core"
import type { Check, Policy, StoreResult } from "@sluice/core/stores"
import fc from "fast-check"
import { leasedStore } from "../leased/leased-store.ts"
import { boundariesOf, SentPeriods } from "./periods.ts"
import { type Decided, type Network, Process, type Wrap } from "./processes.ts"
import { Simulation } from "./simulation.ts"
import { Witness } from "./witness.ts"

/** The service rule, without its limit. */
export type Counting = Omit<Policy, "limit">

/** A step of a story, with the time since the previous step. */
export interface Step {
  readonly afterMs: number
  readonly process: number
  readonly what:
    | {
        readonly kind: "ask"
        readonly requests: number
        readonly gapMs: number
        readonly cost: number
        readonly isNarrow: boolean
      }
    | { readonly kind: "refund"; readonly nth: number; readonly share: number }
    | { readonly kind: "kill" }
    /** Time passes until shortly before a part ends. */
    | { readonly kind: "part end"; readonly beforeMs: number }
    | { readonly kind: "limit"; readonly limit: number }
}

export interface Story {
  readonly counting: Counting
  readonly limit: number
  /** The burst of a bucket, as a multiple of the limit. Absent if the bucket has no burst. */
  readonly burstOf?: number
  readonly processes: number
  readonly startMs: number
  readonly leaseMs: number
  readonly steps: readonly Step[]
  /** Delays of calls, which repeat from the start. */
  readonly delaysMs: readonly number[]
  /** A call or its reply is lost if the number of the call is divisible by this number. If 0, no call is lost. */
  readonly loseEvery: number
}

/** A second rule in addition to the service rule. It is never leased, and refuses often. */
const NARROW: Policy = {
  name: "narrow",
  counter: "narrow",
  algorithm: "fixed-window",
  limit: 20,
  windowMs: 500,
  align: "epoch",
}

interface Granted {
  readonly process: Process
  readonly nth: number
  readonly check: Check
  readonly after: StoreResult["checks"][0]
}

/** Runs a story. Returns the grants and the shared store. Calls may still be in flight. */
export async function run(
  story: Story,
  wrap: Wrap = (remote, clock) => leasedStore(remote, { leaseMs: story.leaseMs, leastLimit: 100, clock }),
  skewMs = 1_234.5,
) {
  const { counting, limit, burstOf, processes, startMs, steps, delaysMs, loseEvery } = story
  const simulation = new Simulation(startMs)
  const shared = memoryStore({ clock: { now: () => simulation.nowMs } })
  const witness = new Witness()
  const grants: Granted[] = []
  let calls = 0
  let delays = 0
  let changes = 0
  const network: Network = {
    delayMs: () => delaysMs[delays++ % delaysMs.length] as number,
    loses() {
      calls++
      if (loseEvery === 0 || calls % loseEvery !== 0) return "nothing"
      return calls % (2 * loseEvery) === 0 ? "call" : "reply"
    },
  }
  const start = (i: number) => new Process(shared, simulation, network, i * skewMs, wrap)
  const running = Array.from({ length: processes }, (_, i) => start(i))
  // Some bursts are smaller than the limit, and some are larger.
  const sized = burstOf === undefined ? {} : { burst: Math.ceil(limit * burstOf) }
  let policy: Policy = { ...counting, limit, ...sized }
  // The wall clocks of processes are up to 280 ms apart, so some processes begin a calendar period earlier than others.
  const sent = running.map(() => new SentPeriods(counting.periods ?? []))
  const policyOf = (place: number): Policy => {
    if (counting.periods === undefined) return policy
    const aheadMs = 40 * (place % 2 === 0 ? place : -place)
    return { ...policy, periods: (sent[place] as SentPeriods).at(simulation.nowMs + aheadMs) }
  }
  const quiet = async (): Promise<void> => {
    while (running.some((process) => process.calls > 0)) await simulation.pass(1)
  }

  async function ask(place: number, cost: number, isNarrow: boolean): Promise<void> {
    const process = running[place] as Process
    // The witness counts with all boundaries of the calendar.
    const exact = policy
    const check: Check = { policy: policyOf(place), partition: "", cost, shadow: false }
    const narrow: Check = { policy: NARROW, partition: "", cost: 1, shadow: false }
    const asked: Decided = { nth: simulation.nth(), serverMs: Math.floor(simulation.nowMs) }
    const answers = process.store.take(isNarrow ? [check, narrow] : [check])
    const answer = await Promise.resolve(answers).catch(() => undefined)
    const counted = answer?.checks[0]
    if (answer === undefined || !answer.granted || counted === undefined) return
    if (counted.taken !== cost) throw new Error("granted, but not taken")
    const { nth, serverMs } = process.decided.get(check) ?? asked
    const { startMs: windowMs } = counted.after ?? counted.state
    witness.granted({ nth, serverMs, policy: exact, units: cost, windowMs, process: place })
    grants.push({ process, nth, check, after: counted })
  }

  async function refund(nth: number, share: number): Promise<void> {
    if (grants.length === 0) return
    const [one] = grants.splice(nth % grants.length, 1) as [Granted]
    const { process, check, after } = one
    const units = Math.ceil(check.cost * share)
    if (after === undefined || !running.includes(process)) return
    witness.refunded(simulation.nth(), one.nth, units, Math.floor(simulation.nowMs))
    const { policy: counted, partition } = check
    const refunds = [{ policy: counted, partition, units, after: after.after ?? after.state }]
    await Promise.resolve(process.store.refund(refunds)).catch(() => undefined)
  }

  for (const { afterMs, process: i, what } of steps) {
    await simulation.pass(afterMs)
    const place = i % processes
    const process = running[place] as Process
    if (what.kind === "ask") {
      for (let n = 0; n < what.requests; n++) {
        void ask(place, what.cost, what.isNarrow)
        if (what.gapMs > 0) await simulation.pass(what.gapMs)
      }
    } else if (what.kind === "refund") void refund(what.nth, what.share)
    else if (what.kind === "part end") {
      await simulation.pass(
        Math.max(0, partEndOf(counting, simulation.nowMs) - simulation.nowMs - what.beforeMs),
      )
    } else if (what.kind === "kill") {
      process.kill()
      running[place] = start(place)
    } else {
      // Wait first, because a request in flight under the old limit could exceed the new limit, with or without
      // leases.
      await quiet()
      // Never use a limit twice. A lease from the first use would fit the second use, and holds units for T that were
      // booked earlier.
      policy = { ...counting, limit: what.limit + changes++ }
    }
  }
  return { simulation, shared: shared as Store, witness, running, policy, quiet }
}

function partEndOf({ windowMs, buckets = 1, periods }: Counting, nowMs: number): number {
  const partMs = windowMs / buckets
  return periods?.find((boundaryMs) => boundaryMs > nowMs) ?? nowMs - (nowMs % partMs) + partMs
}

const WINDOWS_MS = [2_000, 6_000, 20_000]

/** The algorithms whose counters are leased. */
export const COUNTINGS: readonly Omit<Counting, "windowMs">[] = [
  { name: "two windows", counter: "two", algorithm: "sliding-window", align: "epoch" },
  { name: "sub-windows", counter: "sub", algorithm: "sliding-window", align: "epoch", buckets: 10 },
  { name: "strict", counter: "strict", algorithm: "sliding-window-strict", align: "epoch", buckets: 10 },
  { name: "fixed", counter: "fixed", algorithm: "fixed-window", align: "epoch" },
  { name: "calendar", counter: "calendar", algorithm: "fixed-window", align: "epoch", periods: [] },
  { name: "first-hit", counter: "first-hit", algorithm: "fixed-window", align: "first-hit" },
  { name: "periodic", counter: "periodic", algorithm: "token-bucket", align: "epoch", refill: "periodic" },
]

/** A token bucket that refills evenly, which has no parts. */
export const EVEN: Omit<Counting, "windowMs"> = {
  name: "even",
  counter: "even",
  algorithm: "token-bucket",
  align: "epoch",
}

/** The dangerous events that stories may contain. */
export interface Dangers {
  readonly kills?: boolean
  readonly losses?: boolean
  readonly limits?: boolean
  readonly refunds?: boolean
}

/** Generates stories. The demand is around the limit, and many steps happen shortly before the end of a part. */
export function stories(
  countings: readonly Omit<Counting, "windowMs">[],
  { kills = true, losses = true, limits = true, refunds = true }: Dangers = {},
): fc.Arbitrary<Story> {
  const tenths = (max: number) => fc.nat(10 * max).map((tenth) => tenth / 10)
  return fc
    .record({
      base: fc.constantFrom(...countings),
      windowMs: fc.constantFrom(...WINDOWS_MS),
      limit: fc.constantFrom(100, 333, 1_000, 3_000),
    })
    .chain(({ base, windowMs, limit }) => {
      const partMs = base.buckets === undefined ? windowMs : windowMs / base.buckets
      const ask = fc.record({
        kind: fc.constant("ask" as const),
        requests: fc.integer({ min: 1, max: 20 }),
        gapMs: fc.constantFrom(0, 0.1, 0.9, 5.3),
        cost: fc.constantFrom(1, 2, Math.ceil(limit / 200), Math.ceil(limit / 60)),
        isNarrow: fc.oneof(
          { weight: 4, arbitrary: fc.constant(false) },
          { weight: 1, arbitrary: fc.constant(true) },
        ),
      })
      const refund = fc.record({
        kind: fc.constant("refund" as const),
        nth: fc.nat(10_000),
        share: fc.constantFrom(0.5, 1),
      })
      const what: fc.Arbitrary<Step["what"]> = fc.oneof(
        { weight: 20, arbitrary: ask },
        ...(refunds ? [{ weight: 2, arbitrary: refund }] : []),
        {
          weight: 3,
          arbitrary: fc.record({ kind: fc.constant("part end" as const), beforeMs: tenths(4) }),
        },
        ...(kills ? [{ weight: 1, arbitrary: fc.constant({ kind: "kill" as const }) }] : []),
        ...(limits
          ? [
              {
                weight: 1,
                arbitrary: fc
                  .constantFrom(limit, 2 * limit, Math.max(100, Math.ceil(limit / 2)))
                  .map((to) => ({ kind: "limit" as const, limit: to })),
              },
            ]
          : []),
      )
      const afterMs = fc.oneof(
        { weight: 4, arbitrary: tenths(3) },
        { weight: 4, arbitrary: tenths(30) },
        { weight: 1, arbitrary: tenths(Math.ceil(partMs / 5)) },
      )
      const steps = fc.array(fc.record({ afterMs, process: fc.nat(7), what }), {
        minLength: 40,
        maxLength: 160,
      })
      return fc.record({
        counting: fc.constant({
          ...base,
          windowMs,
          ...(base.periods !== undefined && { periods: boundariesOf(windowMs) }),
        }),
        limit: fc.constant(limit),
        ...(base.algorithm === "token-bucket" && { burstOf: fc.constantFrom(0.5, 1, 2) }),
        processes: fc.constantFrom(1, 1, 2, 2, 3, 8),
        startMs: tenths(windowMs).map((offset) => Date.UTC(2024, 0, 1) + offset),
        leaseMs: fc.constantFrom(1_000, 1_000, 50),
        steps,
        delaysMs: fc.array(fc.oneof(fc.constant(0), tenths(1), tenths(8)), { minLength: 1, maxLength: 12 }),
        loseEvery: losses ? fc.constantFrom(0, 0, 5, 17) : fc.constant(0),
      })
    })
}
