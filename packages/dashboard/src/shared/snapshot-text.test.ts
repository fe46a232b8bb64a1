import { createLimiter } from "@sluice/core"
import { describe, expect, it } from "vitest"
import { overviewOf } from "../overview/overview-of.ts"
import { ActivityRecorder } from "../recorder/recorder.ts"
import { RecorderTime } from "../recorder/recorder-time.ts"
import type { ActivitySnapshot } from "../recorder/snapshot.ts"
import { snapshotsIn, textOfSnapshots } from "./snapshot-text.ts"

const MOST_BYTES = 262_144

/** Returns the snapshot of a limiter whose rules refuse some clients, the first one twice as often. */
async function snapshotOf(rules: number, clients: number): Promise<ActivitySnapshot> {
  const limiter = createLimiter({
    service: "shop",
    rules: Array.from({ length: rules }, (_, i) => ({
      ...{ name: `rule-${i}`, field: "header:x", limit: 1, window: "1 hour", shadow: true },
    })),
  })
  const recorder = new ActivityRecorder(limiter, new RecorderTime({ now: Date.now }))
  for (let i = 0; i < clients; i++) {
    const request = { headers: { x: `client ${i} äöü`.padEnd(60, "x") } }
    for (let nth = 0; nth < (i === 0 ? 3 : 2); nth++) await limiter.decide(request)
  }
  return recorder.snapshot()
}

describe("the text of snapshots", () => {
  it("contains everything while it is short enough", async () => {
    const snapshot = await snapshotOf(2, 200)
    const read = snapshotsIn(textOfSnapshots([snapshot]))
    expect(read).toEqual({ format: 1, isWhole: true, snapshots: [snapshot] })
  })

  it("leaves out the ends of lists first, which stay true", async () => {
    const snapshot = await snapshotOf(10, 250)
    expect(Buffer.byteLength(JSON.stringify(snapshot))).toBeGreaterThan(MOST_BYTES)
    const text = textOfSnapshots([snapshot])
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MOST_BYTES)
    const read = snapshotsIn(text)
    expect(read?.isWhole).toBe(true)
    const shortened = read?.snapshots ?? []
    const [whole, short] = [overviewOf([snapshot], Date.now()), overviewOf(shortened, Date.now())].map(
      ({ services }) => services[0]?.rules[9],
    )
    expect(short).toMatchObject({ slots: whole?.slots, refusedClients: whole?.refusedClients })
    expect(short?.refused).toEqual(whole?.refused.slice(0, 64))
    expect(shortened[0]?.rules[9]?.unlistedRefusals).toBe(1)
  })

  it("then leaves out rules, but not those whose clients are refused most, and says so", async () => {
    const snapshot = await snapshotOf(200, 60)
    const rules = snapshot.rules.map((rule) =>
      rule.rule === "rule-199"
        ? { ...rule, refused: rule.refused.map((each) => ({ ...each, refusals: 9 })) }
        : rule,
    )
    const read = snapshotsIn(textOfSnapshots([{ ...snapshot, rules }]))
    expect(read?.isWhole).toBe(false)
    expect(read?.snapshots[0]?.rules.length).toBeGreaterThanOrEqual(10)
    expect(read?.snapshots[0]?.rules[0]?.rule).toBe("rule-199")
  })

  it("then leaves out snapshots after the first ones, and reads no more than fit", async () => {
    const snapshot = await snapshotOf(1, 60)
    let read = 0
    function* many() {
      for (; read < 2_000; read++) yield { ...snapshot, service: `service-${read}` }
    }
    const shared = snapshotsIn(textOfSnapshots(many()))
    const names = shared?.snapshots.map(({ service }) => service) ?? []
    expect([shared?.isWhole, names.length, read]).toEqual([false, expect.any(Number), names.length])
    expect(names.length).toBeGreaterThan(20)
    expect(names).toEqual(names.map((_, i) => `service-${i}`))
  })

  it("is empty if not even the first rule fits", async () => {
    const snapshot = await snapshotOf(1, 1)
    const long = { ...snapshot, rulesStatus: { isStale: false, problems: ["x".repeat(MOST_BYTES)] } }
    const empty = { format: 1, isWhole: false, snapshots: [] }
    expect(snapshotsIn(textOfSnapshots([long, snapshot]))).toEqual(empty)
  })
})
