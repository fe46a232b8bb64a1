import { rulesInMemory, type Tokens } from "@sluice/service"
import { expect, it } from "vitest"
import { examples } from "../test-length.ts"
import { DOORS } from "./door-clients.ts"
import { openService } from "./started.ts"

const RULES = 1_000

const cases = DOORS.map(([name, open], index) => {
  const services = [1, examples(2, 5)][index] as number
  return [services * RULES, name, services, open] as const
})

it.each(cases)(
  "the service makes decisions while %i rules are registered over %s",
  async (_, __, services, open) => {
    let decided = 0
    const during = new Map<string, number[]>()
    const note = (service: string) => during.set(service, [...(during.get(service) ?? []), decided])
    // A registration begins with the check of its token. `audit.changed` is the last call before the rules take effect.
    const tokens: Tokens = {
      isEmpty: false,
      allows(_token, service) {
        note(service)
        return true
      },
      knows: () => true,
      sign: () => undefined,
    }
    const audit = {
      changed: ({ service }: { readonly service: string }) => void note(service),
      notInForce() {},
    }
    const home = rulesInMemory()
    await home.registry.register("busy", [
      { name: "units", field: "user", limit: 1_000_000, window: "1 day" },
    ])
    const started = await openService(home, {
      tokens,
      audit,
      onLimiter: (limiter) => limiter.on("decision", () => decided++),
    })
    const door = open(started)
    const decide = () => door.call("ShouldForwardRequest", { service: "busy", request: '{"user":"ada"}' })
    await decide()
    let isOver = false
    const callers = Array.from({ length: 4 }, async () => {
      while (!isOver) expect((await decide()).value.should_forward).toBe(true)
    })
    const names = Array.from({ length: services }, (_, index) => `large-${index}`)
    const registered = await Promise.all(
      names.map((service) => door.call("RegisterService", { service, rules: manyRules() }, "any-token")),
    )
    isOver = true
    await Promise.all(callers)
    for (const each of registered) expect(each).toMatchObject({ code: 0, value: { version: 1 } })
    for (const name of names) {
      const [before = 0, after = 0] = during.get(name) ?? []
      expect(after - before).toBeGreaterThan(3)
    }
    // All registered rules are in force now.
    const request = JSON.stringify({ user: "eve", method: "GET", url: "/resource-999/1" })
    const { value } = await door.call("ShouldForwardRequest", { service: names[0], request })
    expect(value).toMatchObject({ policy: "rule-999", remaining: 4 })
    door.close()
  },
)

function manyRules(): readonly object[] {
  return Array.from({ length: RULES }, (_, index) => ({
    name: `rule-${index}`,
    field: "user",
    rate: { requests_per_unit: 5, unit: "minute" },
    match: { methods: ["GET"], path: `/resource-${index}/:id` },
  }))
}
