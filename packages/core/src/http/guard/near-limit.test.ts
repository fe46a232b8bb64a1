import { liveRules } from "@sluice/rules"
import { afterEach, describe, expect, it, vi } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { Limiter } from "../../limiter/interface/limiter.ts"
import type { RequestFacts } from "../../request/request.ts"
import { createGuard } from "./create-guard.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const QUIET = { warn() {}, error() {} }

afterEach(() => {
  vi.restoreAllMocks()
})

/** Returns the reports of a limiter as strings: "calls 192.0.2.1 80 %: 8 used". */
function reportsOf<Request>(limiter: Limiter<Request>): string[] {
  const reports: string[] = []
  limiter.on("near-limit", ({ policy, partition, threshold, used }) => {
    reports.push(`${policy} ${partition} ${threshold} %: ${used} used`)
  })
  return reports
}

describe("the thresholds of a route's rules", () => {
  it("are reported until the guard is closed", async () => {
    const limiter = createLimiter<RequestFacts>({ limit: 9, window: "1 minute", clock: manualClock() })
    const reports = reportsOf(limiter)
    const guard = createGuard({ limiter })
    const route = guard.forRoute({ limit: 2, window: "1 minute", notify: [100] }, { label: "GET /b" })
    await Promise.resolve()
    for (let i = 0; i < 2; i++) await route.check(ALICE, {})
    expect(reports).toEqual(["GET /b 192.0.2.1 100 %: 2 used"])
    await guard.close()
    const now = vi.spyOn(performance, "now")
    await limiter.decide(BOB)
    expect(now).not.toHaveBeenCalled()
  })

  it("are reported once for a rule that the limiter and its routes share", async () => {
    const load = async () => ({
      rules: [{ name: "calls", field: "ip", limit: 2, window: "1 minute", notify: [80, 100] }],
      problems: [],
    })
    const limiter = createLimiter<RequestFacts>({
      ...{ rules: liveRules({ load }), onRulesMissing: "deny", clock: manualClock(), logger: QUIET },
    })
    await limiter.ready()
    const reports = reportsOf(limiter)
    const guard = createGuard({ limiter })
    const route = guard.forRoute({ limit: 5, window: "1 minute", notify: [100] }, { label: "GET /b" })
    await Promise.resolve()
    await route.check(ALICE, {})
    await guard.check(ALICE, {})
    expect(reports).toEqual(["calls 192.0.2.1 80 %: 2 used", "calls 192.0.2.1 100 %: 2 used"])
    await limiter.close()
  })
})

describe("rules that are checked in steps", () => {
  it("are reported near their limits only after the last step", async () => {
    const clock = manualClock()
    const guard = createGuard<{ user?: string }>({
      clock,
      logger: QUIET,
      fields: { user: (request) => request.user },
      rules: [
        { name: "address", field: "ip", limit: 2, window: "1 minute", notify: [100] },
        { name: "user", field: "user", limit: 1, window: "1 minute", notify: [100] },
      ],
    })
    await Promise.resolve()
    const reports = reportsOf(guard.limiter)
    const request: { user?: string } = {}
    await guard.check(ALICE, request, undefined as never, "arrival")
    expect(reports).toEqual([])
    request.user = "ann"
    await guard.check(ALICE, request, undefined as never, "app")
    expect(reports.splice(0)).toEqual(["user ann 100 %: 1 used"])
    // The user's rule refuses, and the unit of the address stays taken.
    const second: { user?: string } = { user: "ann" }
    await guard.check(ALICE, second, undefined as never, "arrival")
    expect(reports).toEqual([])
    await guard.check(ALICE, second, undefined as never, "app")
    expect(reports).toEqual(["address 192.0.2.1 100 %: 2 used"])
    await guard.close()
  })
})
