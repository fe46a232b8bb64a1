import { type Deviation, storeContract } from "@sluice/contracts"
import type { ManualClock } from "../packages/core/src/ground/manual-clock.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { writeBackStore } from "../packages/scale/src/write-back/write-back-store.ts"
import { runContract } from "./contracts/run-contract.ts"

function shared(clock: ManualClock): Store {
  return Object.assign(memoryStore({ clock }), { isShared: true })
}

const WINDOWS = ["sliding", "extra", "sub-windows", "strict"]
const WRITTEN = [...WINDOWS, "fixed", "first-hit", "calendar", "token", "burst", "periodic"]

function deviations(reason: string, behaviours: readonly string[]): readonly Deviation[] {
  return behaviours.map((behaviour) => ({ behaviour, reason }))
}

const DEVIATIONS: readonly Deviation[] = [
  ...deviations("the shared store does not read its counters if this process refuses the request", [
    ...["log", "leaky", "permits"].map(
      (name) => `shadow checks: take nothing if a real check refuses, in either order (${name})`,
    ),
    ...[...WRITTEN, "log", "leaky"].map(
      (name) =>
        `a policy under which refused requests count: does not count a cost above the limit or a shadow check (${name})`,
    ),
  ]),
  ...deviations(
    "units that are not charged yet are unknown to a rule that is passed on, although it is the same counter",
    [
      ...WRITTEN.map(
        (name) =>
          `a policy under which refused requests count: keeps its counts when refused requests no longer count (${name})`,
      ),
      ...[
        "forgets refusals when the configured time since the first one has passed",
        "counts only refusals by the check directly before it",
        "does not count a shadow check, a cost above the limit or a peek",
        "counts each refused request",
        "is ended by a reset, but not by a refund",
        "keeps the length of a block if the clock goes back",
      ].map((behaviour) => `a penalty: ${behaviour}`),
    ],
  ),
  ...deviations(
    "the clock of a process does not go back; a clock of the server that does is noticed at the next settling",
    [...WINDOWS.map((name) => ["a window", name]), ...WRITTEN.map((name) => ["ten windows", name])].map(
      ([by, name]) =>
        `a clock that steps back: ${by}: admits a client that keeps asking within two windows, or three for permits (${name})`,
    ),
  ),
  ...deviations(
    "a process does not know the granted units of a counter that it has not read yet",
    [
      "stays while no units are in use, and changes no other counter",
      "of any size leaves a counter that can be charged, and that gives all of it back",
    ].map((behaviour) => `a grant: ${behaviour}`),
  ),
  ...deviations("a charge stops at the largest exact number, also when it is sent to the shared store", [
    "a later refund or charge: refunds but does not charge if two windows together exceed the largest exact number",
  ]),
  ...deviations(
    "an answer says how old the shared count is",
    [
      "agrees with the naive reference in every count of every result",
      "with single requests, agrees with the naive reference in every result",
      "under rules that count refused requests, agrees with the naive reference in every count",
      "of permits beside rates, agrees with the naive reference in every count",
      "of a single client, agrees with the naive reference around every boundary",
    ].map((behaviour) => `any trace: ${behaviour}`),
  ),
]

runContract(
  "a write-back store",
  storeContract({ create: (clock) => writeBackStore(shared(clock), { clock }), deviations: DEVIATIONS }),
)
