import { type Deviation, storeContract } from "@sluice/contracts"
import type { ManualClock } from "../packages/core/src/ground/manual-clock.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { leasedStore } from "../packages/scale/src/leased/leased-store.ts"
import { runContract } from "./contracts/run-contract.ts"

function shared(clock: ManualClock): Store {
  return Object.assign(memoryStore({ clock }), { isShared: true })
}

const WINDOWS = ["sliding", "extra", "sub-windows", "strict", "fixed", "first-hit", "calendar"]

/**
 * The contract tests limits of 2^53 - 1 units. With such limits, leases would hold units that the contract does not
 * expect.
 */
const HOLDS: readonly Deviation[] = [
  ...WINDOWS.map((name) => `does not count above the largest exact number (${name})`),
  "refunds but does not charge if two windows together exceed the largest exact number",
].map((behaviour) => ({
  behaviour: `a later refund or charge: ${behaviour}`,
  reason: "the shared count has units that are held, and a look under another limit sees them as taken",
}))

const EACH = [...WINDOWS, "log", "token", "burst", "periodic", "leaky", "permits"]

/** With a minimum limit of 1, any counter may use leases. */
const HOLDS_OFF: readonly Deviation[] = [
  ...[
    "one check: weights the previous window by the share that the sliding window still covers",
    "one check: starts a fixed window at a multiple of its length, or at the first request",
  ].map((behaviour) => ({
    behaviour,
    reason: "a refused process refuses by itself for 10 ms, and the units come back within them",
  })),
  ...[
    ...EACH.map((name) => `shadow checks: take nothing if a real check refuses, in either order (${name})`),
    "concurrent requests: take from all of their counters or none",
    "any trace: agrees with the naive reference in every count of every result",
    "any trace: with single requests, agrees with the naive reference in every result",
    "any trace: under rules that count refused requests, agrees with the naive reference in every count",
    "any trace: of permits beside rates, agrees with the naive reference in every count",
    "any trace: of a single client, agrees with the naive reference around every boundary",
  ].map((behaviour) => ({
    behaviour,
    reason:
      "an answer says for how long the process holds off, and a refusal that is repeated meanwhile has only the counter " +
      "that refused, with its time",
  })),
]

runContract(
  "a leased store",
  storeContract({ create: (clock) => leasedStore(shared(clock), { clock }), deviations: HOLDS }),
)

runContract(
  "a leased store that leases every limit",
  storeContract({
    create: (clock) => leasedStore(shared(clock), { clock, leastLimit: 1 }),
    deviations: [...HOLDS, ...HOLDS_OFF],
  }),
)
