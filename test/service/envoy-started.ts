import { type ManualClock, manualClock, memoryStore } from "@sluice/core"
import type { DecisionServiceParts } from "@sluice/service"
import { expect, onTestFinished } from "vitest"
import { type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { type Started, startService } from "./started.ts"

/** A field that is missing, and its address too, is warned of once. */
const QUIET = { warn() {}, error() {} }

/** A service with these rules, on a clock of its own, and a gateway that asks it; both for one test. */
export async function startEnvoy(
  rules: string,
  parts: Partial<DecisionServiceParts> = {},
): Promise<{ readonly envoy: EnvoyAsking; readonly clock: ManualClock; readonly started: Started }> {
  const clock = manualClock()
  const store = memoryStore({ clock })
  const shared = { store, clock, storeTimeoutMs: 20_000, logger: QUIET }
  const started = await startService(rules, { shared, ...parts })
  const envoy = openEnvoy(started.grpc)
  onTestFinished(async () => {
    envoy.close()
    await started.stop()
    await store.close()
    expect(started.faults).toEqual([])
  })
  return { envoy, clock, started }
}
