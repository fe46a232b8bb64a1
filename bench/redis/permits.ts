import { setTimeout } from "node:timers/promises"
import type { Store } from "@sluice/core"
import type { Check, CounterState, Policy, Refund } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { median, pairedRatios } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import { connect } from "./connect.ts"
import { type RedisServer, usageOf } from "./server.ts"

const TOGETHER = 32
/** The most renewals and settlements in one call. */
const MOST_TOGETHER = 64
const DAY_MS = 86_400_000
const RATE: Policy = {
  name: "rate",
  counter: "rate",
  algorithm: "sliding-window",
  limit: 1_000_000,
  windowMs: DAY_MS,
  align: "epoch",
}
const OTHER_RATE: Policy = { ...RATE, name: "other", counter: "other", windowMs: DAY_MS / 2 }
/** The window is the longest that `hold` allows, so that a whole run usually stays in one window. */
const PERMITS: Policy = {
  ...RATE,
  name: "permits",
  counter: "permits",
  algorithm: "in-flight",
  windowMs: DAY_MS / 48,
}
const FULL: Policy = { ...PERMITS, name: "full", counter: "full", limit: 1 }
/** The window is short, because renewals are measured at the start of the window after the permits were taken. */
const RENEWED: Policy = { ...PERMITS, name: "renewed", counter: "renewed", windowMs: 4_000 }

/** The mark of a settled reservation, as for reservations that last ten minutes. */
const MARK: Policy = { ...PERMITS, name: "mark", limit: 1, windowMs: 660_000 }

/** What a client does. The figure is the CPU time of Redis for one client, in microseconds. */
type Operation =
  | "rate"
  | "permit"
  | "release"
  | "refused"
  | "two rates"
  | "rate and permit"
  | "rate, together"
  | "release, together"
  | "two rates, together"
  | "rate and permit, together"
  | "renewal, together"
  | "settle, together"

/** The measured times of all rounds, and the bytes of a key with the given number of permits. */
export interface PermitCosts {
  readonly us: Readonly<Record<Operation, readonly number[]>>
  readonly bytes: Readonly<Record<string, number>>
}

/** Measures permits next to takes of rates by the same number of clients. */
export async function measurePermits(
  server: RedisServer,
  { rounds, clients }: { readonly rounds: number; readonly clients: number },
): Promise<PermitCosts> {
  const client = await connect(server.port)
  const store = redisStore({ client, timeoutMs: 5_000 })
  const us = {} as Record<Operation, number[]>
  const bytes: Record<string, number> = {}
  try {
    await server.command("FLUSHALL", "SYNC")
    for (const policy of [RATE, OTHER_RATE, PERMITS, FULL]) await takeAll(store, clients, TOGETHER, [policy])
    for (let round = 0; round < rounds; round++) await measureRound(server, store, clients, us, round)
    for (const permits of [1, 1_000]) {
      await server.command("FLUSHALL", "SYNC")
      await store.take([{ ...checkOf(PERMITS, 0), cost: permits }])
      const key = String(await server.command("RANDOMKEY"))
      bytes[permits] = Number(await server.command("MEMORY", "USAGE", key))
    }
  } finally {
    await store.close()
    client.disconnect()
  }
  return { us, bytes }
}

async function measureRound(
  server: RedisServer,
  store: Store,
  clients: number,
  us: Record<Operation, number[]>,
  round: number,
): Promise<void> {
  const measure = async <Result>(name: Operation, work: () => Promise<Result>): Promise<Result> => {
    const before = await usageOf(server)
    const result = await work()
    us[name] = [...(us[name] ?? []), ((await usageOf(server)).cpuUs - before.cpuUs) / clients]
    return result
  }
  const take = (name: Operation, together: number, ...policies: readonly Policy[]) =>
    measure(name, () => takeAll(store, clients, together, policies))
  await take("rate", 1, RATE)
  const alone = await take("permit", 1, PERMITS)
  await measure("release", () => refundAll(store, 1, refundsOf(PERMITS, alone, 1)))
  await take("refused", 1, FULL)
  await take("two rates", 1, RATE, OTHER_RATE)
  await take("rate and permit", 1, RATE, PERMITS)
  const taken = await take("rate, together", TOGETHER, RATE)
  await take("two rates, together", TOGETHER, RATE, OTHER_RATE)
  const both = await take("rate and permit, together", TOGETHER, RATE, PERMITS)
  await measure("release, together", () => refundAll(store, TOGETHER, refundsOf(PERMITS, both, 1)))
  await measure("settle, together", async () => {
    // Each reservation has a new mark.
    await takeAll(store, clients, MOST_TOGETHER, [{ ...MARK, counter: `mark${round}` }])
    await refundAll(store, MOST_TOGETHER, refundsOf(RATE, taken, 1))
  })
  await nextWindow()
  const held = await takeAll(store, clients, MOST_TOGETHER, [RENEWED])
  await nextWindow()
  await measure("renewal, together", () => refundAll(store, MOST_TOGETHER, refundsOf(RENEWED, held, -1)))
}

/** Windows begin at multiples of their length since 1970. */
async function nextWindow(): Promise<void> {
  await setTimeout(RENEWED.windowMs - (Date.now() % RENEWED.windowMs) + 10)
}

function checkOf(policy: Policy, client: number): Check {
  return { policy, partition: `10.0.${client >> 8}.${client & 255}`, cost: 1, shadow: false }
}

/** Takes a unit of each policy for each client. Returns the states of the last policy. */
async function takeAll(
  store: Store,
  clients: number,
  together: number,
  policies: readonly Policy[],
): Promise<readonly CounterState[]> {
  const states: CounterState[] = []
  for (let from = 0; from < clients; from += together) {
    const results = await Promise.all(
      Array.from({ length: together }, async (_, i) =>
        store.take(policies.map((policy) => checkOf(policy, from + i))),
      ),
    )
    for (const { checks } of results) states.push(checks.at(-1)?.state as CounterState)
  }
  return states
}

function refundsOf(policy: Policy, states: readonly CounterState[], units: number): readonly Refund[] {
  return states.map((after, i) => ({ policy, partition: checkOf(policy, i).partition, units, after }))
}

async function refundAll(store: Store, together: number, refunds: readonly Refund[]): Promise<void> {
  for (let from = 0; from < refunds.length; from += together) {
    await store.refund(refunds.slice(from, from + together))
  }
}

export function printPermits({ us, bytes }: PermitCosts): void {
  printTable(
    "permits: CPU time of Redis in us",
    ["", "us"],
    Object.entries(us).map(([name, values]) => [name, median(values).toFixed(2)]),
  )
  console.log()
  const ratio = (what: string, values: readonly number[], to: readonly number[], most: number): void => {
    const times = median(pairedRatios(values, to))
    printWanted(what, times, times <= most, `at most ${most}`)
  }
  ratio("a permit alone, times a take", us.permit, us.rate, 1.1)
  ratio("a release alone, times a take", us.release, us.rate, 1.2)
  ratio("a rate and a permit alone, times two rates", us["rate and permit"], us["two rates"], 1.05)
  ratio("refused by permits alone, times a take", us.refused, us.rate, 1.4)
  const rates = us["rate, together"]
  const [both, releases] = [us["rate and permit, together"], us["release, together"]]
  const inOneCall = `${TOGETHER} in a call`
  ratio(`a rate and a permit, ${inOneCall}, times two rates`, both, us["two rates, together"], 1.05)
  ratio(`a release, ${inOneCall}, times a take`, releases, rates, 1.5)
  const all = both.map((value, round) => value + (releases[round] ?? Number.NaN))
  ratio(`a rate, a permit and its release, ${inOneCall}, times a take`, all, rates, 3)
  const renewal = median(us["renewal, together"])
  printWanted(`a renewal, ${MOST_TOGETHER} in a call, us`, renewal, renewal <= 12, "at most 12")
  const settlement = median(us["settle, together"])
  printWanted(`a settlement, ${MOST_TOGETHER} in a call, us`, settlement, settlement <= 15, "at most 15")
  for (const [permits, size] of Object.entries(bytes)) {
    printWanted(`bytes of a key with ${permits} permits`, size, size <= 80, "at most 80")
  }
}
