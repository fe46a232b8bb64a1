import { type Deviation, storeContract } from "@sluice/contracts"
import type { ManualClock } from "../packages/core/src/ground/clock.ts"
import { leasedStore } from "../packages/core/src/stores/leased/leased-store.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { runContract } from "./contracts/run-contract.ts"

function shared(clock: ManualClock): Store {
  return Object.assign(memoryStore({ clock }), { isShared: true })
}

const WINDOWS = ["sliding", "extra", "sub-windows", "strict", "fixed", "first-hit"]

/** The contract counts in limits of 2^53 - 1 units. There, leases hold units that the contract does not expect. */
const HOLDS: readonly Deviation[] = [
  ...WINDOWS.map((name) => `charges no further than the largest number (${name})`),
  "gives back as much, and charges nothing, where two windows hold more than that",
].map((behaviour) => ({
  behaviour: `giving back after a while: ${behaviour}`,
  reason: "the shared count has units that are held, and a look under another limit sees them as taken",
}))

const EACH = [...WINDOWS, "log", "token", "burst", "periodic", "leaky"]

/** With a least limit of 1, every counter may be held off. */
const HOLDS_OFF: readonly Deviation[] = [
  ...[
    "one check: weighs the previous window by what the sliding one still covers",
    "one check: opens a fixed window with the clock, or with the first request",
  ].map((behaviour) => ({
    behaviour,
    reason: "a refused process refuses by itself for 10 ms, and the units come back within them",
  })),
  ...[
    ...EACH.map(
      (name) => `shadow checks: takes nothing when a real check refuses, in whichever order (${name})`,
    ),
    "several requests in a call: all or nothing holds between callers at once",
    "any trace: agrees with the naive reference, to every count of every answer",
    "any trace: of requests one by one agrees with the naive reference, in all that it tells",
    "any trace: under rules that count what they refuse agrees with the naive reference, to every count",
    "any trace: of a single client agrees with the naive reference, around every boundary",
  ].map((behaviour) => ({
    behaviour,
    reason:
      "an answer says for how long the process holds off, and a refusal that is repeated meanwhile has only the counter " +
      "that refused, as of its own time",
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
