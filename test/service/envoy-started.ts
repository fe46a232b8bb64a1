import { memoryStore } from "@sluice/core"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import type { DecisionServiceParts } from "@sluice/service"
import { expect, onTestFinished } from "vitest"
import { type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { type Started, startService } from "./started.ts"

/** A logger without output. Otherwise, a missing field or address would log a warning. */
const QUIET = { warn() {}, error() {} }

/**
 * Starts a service with these rules on a manual clock, and a gateway that calls it. Closes the service and the
 * gateway when the test ends.
 */
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
