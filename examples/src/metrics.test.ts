import { memoryStore, type Store } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { liveRules, type RuleSource } from "@sluice/rules"
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
    createApp({
      rules: liveRules(SOURCE),
      onRulesMissing: "allow",
      service: "shop",
      store,
      clock,
      logger: { warn() {}, error() {} },
    }),
  )
  onTestFinished(() => server.close())
  const statuses: number[] = []
  for (let times = 0; times < 6; times++) statuses.push((await fetch(server.url)).status)
  const scrape = async () => (await fetch(`${server.url}/metrics`)).text()
  return { clock, statuses, scrape }
}

it("the metrics example counts the requests of each rule by outcome, and exports the rules' version and age", async () => {
  const { clock, statuses, scrape } = await setUp(memoryStore({ clock: manualClock() }))
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  clock.advance(90_000)
  const metrics = await scrape()
  const lines = metrics.split("\n").filter((line) => /^sluice_(policy|rule_set)/.test(line))
  const of = 'sluice_limiter_name="shop"'
  const count = (policy: string, result: string, reason = "") =>
    `sluice_policy_decisions_total{${of},sluice_policy_name="${policy}",sluice_decision_result="${result}",` +
    `sluice_decision_mode="normal"${reason}}`
  const quota = ',sluice_refusal_reason="quota"'
  expect(lines.sort()).toEqual(
    [
      `${count("real", "admitted")} 4`,
      `${count("real", "refused", quota)} 2`,
      `${count("tried-out", "admitted")} 2`,
      `${count("tried-out", "shadowed", quota)} 4`,
      `sluice_rule_set_age{${of}} 90`,
      `sluice_rule_set_version{${of}} 7`,
      `sluice_rule_set_stale{${of}} 0`,
      `sluice_rule_set_rejected{${of}} 0`,
      `sluice_rule_set_problems{${of}} 0`,
    ].sort(),
  )
  expect(metrics).not.toContain("127.0.0.1")
})

it("the metrics example distinguishes decisions that were made without the shared store", async () => {
  const fail = () => Promise.reject(new Error("gone"))
  const { scrape } = await setUp({ take: fail, read: fail, refund: fail, reset: fail, close() {} })
  expect(await scrape()).toMatch(
    /sluice_policy_name="real",sluice_decision_result="refused",sluice_decision_mode="degraded",.+\} 2\n/,
  )
})
