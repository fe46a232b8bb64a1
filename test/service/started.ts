import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { createRuleBook, fileRules, type RuleSource } from "@sluice/rules"
import { createDecisionService, type DecisionServiceParts, type RulesHome, tokens } from "@sluice/service"
import { afterAll, beforeAll, expect, onTestFinished } from "vitest"

/** The two items of the contract: service 1 allows 5 requests a minute per user_id, and service 2 allows 10 a day. */
export const TWO_SERVICES = `
service_id: 1
rules:
  name: per-user
  field: user_id
  rate: { requests_per_unit: 5, unit: minute }
  request_rejection_message: retry-with-exponential-backoff
---
service_id: 2
rules:
  name: daily
  rate: { requests_per_unit: 10, unit: day }
  request_rejection_message: exhausted-daily-limit
`

/**
 * Three services. The first service has plenty of quota. The second service holds every request after its first, and
 * the third service holds only one request.
 */
export const WAITING = `
service_id: 1
rules: { name: units, field: user, rate: { requests_per_unit: 1000000, unit: day } }
---
service_id: 2
rules:
  name: held
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_wait_ms: 2147483647 }
---
service_id: 3
rules:
  name: one-waits
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_waiting: 1, max_wait_ms: 86400000 }
`

/** A decision service in this process, on free ports. */
export interface Started {
  readonly grpc: string
  readonly http: string
  /** The internal faults that the service has reported. */
  readonly faults: unknown[]
  stop(): Promise<void>
  /** Stops the service. Resolves with true if all calls in flight were answered in time. */
  end(timeoutMs: number): Promise<boolean>
}

/**
 * Starts a service with a file of these rules, or with the given home of rules. Uses default options and a separate
 * store unless others are given.
 */
export async function startService(
  rules: string | RulesHome,
  parts: Partial<DecisionServiceParts> = {},
  host = "127.0.0.1",
): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-service-"))
  const { source, registry } = typeof rules === "string" ? inFile(folder, rules) : rules
  const book = createRuleBook({ source, services: "all" })
  // Use a manual clock, because a minute or a day must not end during a test.
  const store = memoryStore({ clock: manualClock(Date.now()) })
  const faults: unknown[] = []
  const service = createDecisionService({
    book,
    registry,
    shared: { store, storeTimeoutMs: 20_000 },
    unknownServices: "forward",
    tokens: tokens({}),
    isRegistrationOpen: true,
    audit: { changed() {}, notInForce() {} },
    bounds: { maxMessageBytes: 4 * 1024 * 1024, maxInFlight: 1_000, maxRequests: 10_000, arrivalMs: 10_000 },
    onLimiter() {},
    onUnknownService() {},
    onFault: (error) => faults.push(error),
    ...parts,
  })
  await book.ready()
  const ports = await service.listen({ host, port: 0 }, { host, port: 0 })
  const end = async (timeoutMs: number): Promise<boolean> => {
    const wasInTime = await service.close(timeoutMs)
    book.close()
    await source.close?.()
    await store.close()
    rmSync(folder, { recursive: true })
    return wasInTime
  }
  const shownHost = host.includes(":") ? `[${host}]` : host
  return {
    grpc: `${shownHost}:${ports.grpc}`,
    http: `http://${shownHost}:${ports.http}`,
    faults,
    end,
    async stop() {
      await end(5_000)
    },
  }
}

/**
 * Starts a service like `startService` before the tests, and stops it after them. Fails if the service reports a
 * fault.
 */
export function useService(...given: Parameters<typeof startService>): Started {
  const started = {} as Started
  beforeAll(async () => void Object.assign(started, await startService(...given)))
  afterAll(() => stopWithoutFaults(started))
  return started
}

/** Starts a service like `startService`, and stops it when the test ends. Fails if the service reports a fault. */
export async function openService(...given: Parameters<typeof startService>): Promise<Started> {
  const started = await startService(...given)
  onTestFinished(() => stopWithoutFaults(started))
  return started
}

async function stopWithoutFaults(started: Started): Promise<void> {
  await started.stop()
  expect(started.faults).toEqual([])
}

function inFile(folder: string, rules: string): { source: RuleSource; registry: undefined } {
  const file = join(folder, "rules.yaml")
  writeFileSync(file, rules)
  return { source: fileRules(file), registry: undefined }
}
