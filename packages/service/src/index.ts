export {
  type Address,
  type Bounds,
  createDecisionService,
  type DecisionService,
  type DecisionServiceParts,
} from "./decision-service.ts"
export { type Audit, auditTo, type Change } from "./registering/audit.ts"
export { fileFirst } from "./registering/file-first.ts"
export { type RulesHome, rulesInMemory } from "./registering/rules-home.ts"
export { rulesInTable } from "./registering/rules-in-table.ts"
export { type Tokens, tokens } from "./registering/tokens.ts"
