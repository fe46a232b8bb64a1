import test from "node:test"
import {
  type Behaviour,
  type Deviation,
  type RuleSourceUnderTest,
  ruleSourceContract,
  type StoreUnderTest,
  storeContract,
} from "@sluice/contracts"
import { memoryStore } from "@sluice/core"
import { type CounterBackend, type KeptCounter, transactionalStore } from "@sluice/core/stores"
import { staticRules } from "@sluice/rules"

const kept = new Map<string, KeptCounter>()
const backend: CounterBackend = {
  async transact(keys, change) {
    for (const { key, counter } of change(
      keys.map((key) => kept.get(key)),
      Date.now(),
    )) {
      if (counter === undefined) kept.delete(key)
      else kept.set(key, counter)
    }
  },
}
const deviations: readonly Deviation[] = [{ behaviour: "closed: take", reason: "it is never closed" }]
const stores: readonly StoreUnderTest[] = [
  { create: (clock) => memoryStore({ clock }) },
  { create: async () => transactionalStore(backend), deviations, effort: 0.5 },
]
const source: RuleSourceUnderTest = {
  create: async (documents) => ({
    source: staticRules(
      documents.map(({ service_id }) => ({
        name: service_id,
        field: "service",
        limit: 1,
        window: "1 minute",
      })),
    ),
    async write() {},
    async breakDown() {},
    async dispose() {},
  }),
}
const behaviours: readonly Behaviour[] = [...stores.flatMap(storeContract), ...ruleSourceContract(source)]
for (const { name, show, deviation } of behaviours) test(name, { skip: deviation ?? false }, show)

// @ts-expect-error `create` is missing
storeContract({ deviations })
