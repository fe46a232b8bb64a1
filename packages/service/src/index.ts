/**
 * The decision service as a library for your own program. For the ready-made program and its API, see
 * docs/service/start.md.
 * @module @sluice/service
 */

export type { Overload } from "./bounds/in-flight.ts"
export type { SettlementEnd } from "./contract/settling.ts"
export type { AskedRequest, KnownFacts } from "./deciding/asked-request.ts"
export type { SharedOptions } from "./deciding/service-guards.ts"
export type { UnknownServices } from "./deciding/unregistered.ts"
export {
  type Bounds,
  createDecisionService,
  type DecisionService,
  type DecisionServiceParts,
  type Ports,
} from "./decision-service.ts"
export { type Audit, type AuditLog, auditTo, type Change, type ClientChange } from "./registering/audit.ts"
export { fileFirst } from "./registering/file-first.ts"
export { type RulesHome, rulesInMemory } from "./registering/rules-home.ts"
export { type RulesInTable, rulesInTable } from "./registering/rules-in-table.ts"
export { type Tokens, tokens } from "./registering/tokens.ts"
export type {
  ConnectionBound,
  ConnectionBounds,
  Door,
  DoorBounds,
  DoorListeners,
  GrpcReader,
} from "./sockets/door.ts"
export type { ListenAddress } from "./sockets/listening.ts"
export type { Tls } from "./sockets/tls.ts"
