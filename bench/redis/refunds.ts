import type { Store } from "@sluice/core"
import type { Check, Policy, Refund, StoreResult } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { startProxy } from "../../test/servers/tcp-proxy.ts"
import { median, pairedRatios } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import { connect } from "./connect.ts"
import { type RedisServer, usageOf } from "./server.ts"

/** The most takes or refunds in one call. */
const TOGETHER = 64
const MOST_TIMES = 1.5
const FAR_MS = 80
const LEAST_PER_SECOND = 6_000
/**
 * The window is long, so that a whole run stays in one sub-window. Most real refunds also fall into the sub-window of
 * their take.
 */
const DAY_MS = 86_400_000
const KINDS = {
  "sliding window": { algorithm: "sliding-window" },
  "fixed window": { algorithm: "fixed-window" },
  "strict window": { algorithm: "sliding-window-strict", buckets: 2 },
  "sub-windows": { algorithm: "sliding-window", buckets: 2 },
  "token bucket": { algorithm: "token-bucket", burst: 1_000 },
} as const satisfies Record<string, Partial<Policy>>
/** The window algorithms whose refunds must be as cheap as `MOST_TIMES` requires. */
const QUICK: readonly string[] = ["sliding window", "fixed window", "strict window"]

/** The CPU time of Redis for one operation of a client, in microseconds, in each round. */
interface Costs {
  readonly first: number[]
  readonly take: number[]
  readonly refund: number[]
  readonly charge: number[]
  readonly firstCharge: number[]
}

export type RefundCosts = Readonly<Record<string, Costs>>

/** Measures refunds and charges of many clients in full calls, next to takes of the same clients. */
export async function measureRefunds(
  server: RedisServer,
  { rounds, clients }: { readonly rounds: number; readonly clients: number },
): Promise<RefundCosts> {
  const client = await connect(server.port)
  const store = redisStore({ client, timeoutMs: 5_000 })
  const measured: Record<string, Costs> = {}
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [name, kind] of Object.entries(KINDS)) {
        await server.command("FLUSHALL", "SYNC")
        measured[name] ??= { first: [], take: [], refund: [], charge: [], firstCharge: [] }
        await measureKind(server, store, { name, ...kind }, clients, measured[name])
      }
    }
  } finally {
    await store.close()
    client.disconnect()
  }
  return measured
}

async function measureKind(
  server: RedisServer,
  store: Store,
  { name, ...kind }: Partial<Policy> & { readonly name: string },
  clients: number,
  costs: Costs,
): Promise<void> {
  const policy = { name, counter: name, limit: 1_000, windowMs: DAY_MS, ...kind } as Policy
  const checks = Array.from({ length: clients }, (_, i): Check => {
    return { policy, partition: `10.0.${i >> 8}.${i & 255}`, cost: 2, shadow: false }
  })
  const others = checks.map((check) => ({ ...check, partition: `other ${check.partition}` }))
  const cpuUs = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await usageOf(server)
    await work()
    return ((await usageOf(server)).cpuUs - before.cpuUs) / clients
  }
  costs.first.push(
    await cpuUs(() =>
      inGroups(checks, async (some) => Promise.all(some.map(async (check) => store.take([check])))),
    ),
  )
  let taken: readonly StoreResult[] = []
  costs.take.push(
    await cpuUs(async () => {
      taken = (
        await inGroups(checks, async (some) => Promise.all(some.map(async (check) => store.take([check]))))
      ).flat()
    }),
  )
  const refundsOf = (some: readonly Check[], units: number): readonly Refund[] =>
    some.map(({ partition }, i) => {
      const after = taken[i]?.checks[0]?.state
      if (after === undefined) throw new Error(`${name}: nothing was taken`)
      return { policy, partition, units, after }
    })
  const refund = (refunds: readonly Refund[]) => inGroups(refunds, (some) => store.refund(some))
  costs.charge.push(await cpuUs(() => refund(refundsOf(checks, -1))))
  costs.refund.push(await cpuUs(() => refund(refundsOf(checks, 1))))
  costs.firstCharge.push(await cpuUs(() => refund(refundsOf(others, -1))))
}

async function inGroups<One, Answer>(
  all: readonly One[],
  work: (some: readonly One[]) => Answer | Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (let from = 0; from < all.length; from += TOGETHER) {
    answers.push(await work(all.slice(from, from + TOGETHER)))
  }
  return answers
}

/** Returns how many charges per second one process sends to a server that is 80 ms away. */
export async function measureFarCharges(server: RedisServer, charges: number): Promise<number> {
  const proxy = await startProxy(server)
  proxy.delayMs = FAR_MS / 2
  const client = await connect(proxy.port)
  const store = redisStore({ client, timeoutMs: 60_000 })
  try {
    const policy: Policy = {
      name: "far",
      counter: "far",
      algorithm: "sliding-window",
      limit: 1_000,
      windowMs: DAY_MS,
      align: "epoch",
    }
    const answer = await store.take([{ policy, partition: "", cost: 1, shadow: false }])
    const after = answer?.checks[0]?.state
    if (after === undefined) throw new Error("nothing was taken")
    const startedMs = performance.now()
    const all = Array.from({ length: charges }, (_, i): Refund => {
      return { policy, partition: `${i}`, units: -1, after }
    })
    await store.refund(all)
    return (charges * 1_000) / (performance.now() - startedMs)
  } finally {
    await store.close()
    client.disconnect()
    proxy.close()
  }
}

export function printFarCharges(perSecond: number): void {
  const what = `charges a second to a server ${FAR_MS} ms away`
  printWanted(what, perSecond, perSecond >= LEAST_PER_SECOND, `at least ${LEAST_PER_SECOND}`)
}

export function printRefunds(costs: RefundCosts): void {
  printTable(
    `refunds and charges, ${TOGETHER} clients in a call: CPU time of Redis in us`,
    ["", "first take", "take", "refund", "charge", "first charge"],
    Object.entries(costs).map(([name, { first, take, refund, charge, firstCharge }]) => [
      name,
      ...[first, take, refund, charge, firstCharge].map((values) => median(values).toFixed(2)),
    ]),
  )
  console.log()
  for (const [name, { first, take, ...others }] of Object.entries(costs)) {
    for (const [what, values] of Object.entries(others)) {
      const ratio = median(pairedRatios(values, what === "firstCharge" ? first : take))
      const of = `${name}: ${what === "firstCharge" ? "first charge, times a first take" : `${what}, times a take`}`
      if (QUICK.includes(name)) printWanted(of, ratio, ratio <= MOST_TIMES, `at most ${MOST_TIMES}`)
      else console.log(`        ${of}: ${ratio.toFixed(2)}`)
    }
  }
}
