/**
 * The contracts of every store, rule source and registry of Sluice. Each contract is a list of behaviors for any test
 * runner. Sluice tests its own implementations with these contracts.
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
