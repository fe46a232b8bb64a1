import { manualClock, memoryStore, type RuleSource, type Store } from "@sluice/core"
import { expect, it, onTestFinished } from "vitest"
import { serve } from "./demo/serve.ts"
import { createApp } from "./metrics.ts"

const SOURCE: RuleSource = {
  load: async () => ({
    rules: [
      { name: "real", field: "ip", limit: 4, window: "1m" },
      { name: "tried-out", field: "ip", limit: 2, window: "1m", shadow: true },
    ],
    problems: [],
    version: 7,
  }),
}

async function setUp(store: Store) {
  const clock = manualClock()
  const server = await serve(
    createApp({ rules: SOURCE, service: "shop", store, clock, logger: { warn() {}, error() {} } }),
  )
  onTestFinished(() => server.close())
  const statuses: number[] = []
  for (let times = 0; times < 6; times++) statuses.push((await fetch(server.url)).status)
  const scrape = async () => (await fetch(`${server.url}/metrics`)).text()
  return { clock, statuses, scrape }
}

it("counts admitted, refused and shadowed requests of each rule, and tells version and age of the rules", async () => {
  const { clock, statuses, scrape } = await setUp(memoryStore({ clock: manualClock() }))
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  clock.advance(90_000)
  const metrics = await scrape()
  const lines = metrics.split("\n").filter((line) => line.startsWith("sluice_"))
  const count = (policy: string, result: string) =>
    `sluice_decisions_total{service="shop",policy="${policy}",result="${result}",mode="normal"}`
  expect(lines.sort()).toEqual(
    [
      `${count("real", "admitted")} 4`,
      `${count("real", "refused")} 2`,
      `${count("tried-out", "admitted")} 2`,
      `${count("tried-out", "shadowed")} 4`,
      'sluice_rules_age_seconds{service="shop"} 90',
      'sluice_rules_version{service="shop"} 7',
      'sluice_rules_stale{service="shop"} 0',
    ].sort(),
  )
  expect(metrics).not.toContain("127.0.0.1")
})

it("tells decisions apart that were made without the shared store", async () => {
  const fail = () => Promise.reject(new Error("gone"))
  const { scrape } = await setUp({ take: fail, peek: fail, giveBack: fail, reset: fail, close() {} })
  expect(await scrape()).toContain('policy="real",result="refused",mode="degraded"} 2')
})
