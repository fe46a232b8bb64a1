export {
  type Address,
  type Bounds,
  createDecisionService,
  type DecisionService,
  type DecisionServiceParts,
} from "./decision-service.ts"
export { type Audit, auditTo, type Change } from "./registering/audit.ts"
export { type Tokens, tokens } from "./registering/tokens.ts"
