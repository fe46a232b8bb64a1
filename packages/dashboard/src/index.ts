/**
 * Who is refused now, by which rule, and since when. The README has an example.
 * @module @sluice/dashboard
 */

export { type Activity, type ActivityOptions, recordActivity } from "./activity.ts"
export type { DashboardChange, DashboardLogger } from "./mount/audit.ts"
export { type Dashboard, type DashboardOptions, type DashboardSource, dashboard } from "./mount/dashboard.ts"
export type { FastifyScope, KoaContext } from "./mount/servers.ts"
export type {
  ActivityOverview,
  ActivitySums,
  InstanceOverview,
  RuleOverview,
  ServiceOverview,
} from "./overview/overview.ts"
export { overviewOf as mergeActivity } from "./overview/overview-of.ts"
export type {
  ActivitySnapshot,
  BusyClient,
  DecisionOutcome,
  LimitedClient,
  OutcomeCounts,
  OutcomeTotals,
  RecentRefusal,
  RuleActivity,
  RulesState,
  ServiceSums,
} from "./recorder/snapshot.ts"
export type { ActivityBoard, BoardState } from "./shared/activity-board.ts"
