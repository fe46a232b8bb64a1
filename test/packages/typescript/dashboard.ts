import { createLimiter } from "@sluice/core"
import {
  type Activity,
  type ActivityBoard,
  type ActivityOverview,
  type ActivitySnapshot,
  type Dashboard,
  dashboard,
  type LimitedClient,
  mergeActivity,
  recordActivity,
} from "@sluice/dashboard"

interface Job {
  readonly tenant: string
}

const jobs = createLimiter<Job>({
  limit: 10,
  window: "1 minute",
  field: "tenant",
  fields: { tenant: (job) => job.tenant },
})
const requests = createLimiter({ limit: 10, window: "1 minute" })
export const activity: Activity = recordActivity([jobs, requests])
export const one: Activity = recordActivity(jobs)
const snapshots: readonly ActivitySnapshot[] = activity.snapshots()
export const overview: ActivityOverview = mergeActivity(snapshots, Date.now())
export const refused: readonly LimitedClient[] | undefined = overview.services[0]?.rules[0]?.refused

const board: ActivityBoard = {
  exchange: async (_process, text) => ({ isWatched: false, isFull: text !== undefined, texts: [] }),
}
export const shared: Promise<ActivityOverview> = recordActivity(jobs, { shared: board }).overviewOfAll()
export const missing: string | undefined = overview.missing

// @ts-expect-error a limiter is needed, not its options
recordActivity({ limit: 10 })

export const page: Dashboard = dashboard([jobs, requests], {
  authorize: ({ headers }) => headers["x-user"] === "admin",
  keys: "shown",
})
export const inKoa: Dashboard["koa"] = dashboard(requests, {
  authorize: async (ctx: { readonly state: { readonly isAdmin: boolean } }) => ctx.state.isAdmin,
}).koa
// @ts-expect-error keys are hashed or shown
dashboard(requests, { keys: "plain" })
