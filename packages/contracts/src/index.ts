/**
 * What every store, rule source and registry of Sluice does. Each contract is a list of behaviours for any test runner, with which
 * Sluice's own are tested.
 * @module @sluice/contracts
 */

export type { Behaviour, Deviation } from "./behaviour.ts"
export { type OpenedRegistry, type RegistryUnderTest, registryContract } from "./registry-contract.ts"
export {
  type OpenedSource,
  type RuleSourceUnderTest,
  ruleSourceContract,
  type StoredRules,
} from "./rule-source-contract.ts"
export { type StoreUnderTest, storeContract } from "./store-contract.ts"
export { type ExpiringStore, type ExpiryUnderTest, storeExpiryContract } from "./store-expiry-contract.ts"
