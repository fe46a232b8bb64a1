import { liveRules } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { checkAll } from "./check-all.ts"
import { createGuard } from "./create-guard.ts"
import type { Guard } from "./guard.ts"
import { changingRules } from "./testing/changing-rules.ts"

const FACTS: RequestFacts = { remoteAddress: "192.0.2.1" }

async function mount(options: LimiterOptions<object>): Promise<Guard<object>> {
  const guard = createGuard<object>({ clock: manualClock(), ...options } as LimiterOptions<object>)
  onTestFinished(() => guard.close())
  await guard.limiter.ready()
  return guard
}

/** Returns the guards of two services on one store. The second guard admits one request. */
async function mountTwo(ofSecond: Partial<LimiterOptions<object>> = {}) {
  const store = memoryStore({ clock: manualClock() })
  const rule = { store, window: "1m" } as const
  const search = await mount({ ...rule, service: "search", limit: 5, rejectionMessage: "Search less." })
  const maps = await mount({ ...rule, service: "maps", limit: 1, ...ofSecond } as LimiterOptions<object>)
  return [search, maps] as const
}

const ask = (...guards: readonly Guard<object>[]) =>
  checkAll(guards.map((guard) => ({ guard, facts: FACTS, request: {} })))
const left = async ({ limiter }: Guard<object>) => (await limiter.peek(FACTS)).remaining

describe("guards that check requests together", () => {
  it("take the units of every request, and return the headers for each", async () => {
    const [search, maps] = await mountTwo()
    const outcomes = await ask(search, maps)
    expect(outcomes.map(({ decision, headers }) => [decision.remaining, headers[0]])).toEqual([
      [4, ["RateLimit-Policy", '"ip-1m";q=5;w=60']],
      [0, ["RateLimit-Policy", '"ip-1m";q=1;w=60']],
    ])
    expect([await left(search), await left(maps)]).toEqual([4, 0])
  })

  it("take no units if one of them refuses, and the others name none of their rules", async () => {
    const [search, maps] = await mountTwo()
    await ask(maps)
    const [held, refused] = await ask(search, maps)
    expect(held?.rejection?.status).toBe(429)
    expect(JSON.parse(held?.rejection?.body as string)).toEqual({
      ...{ type: expect.stringContaining("#quota-exceeded"), title: "Quota Exceeded", status: 429 },
      detail: "Another service that this request needs has refused it. Try again in 61 seconds.",
    })
    expect(JSON.parse(refused?.rejection?.body as string)).toMatchObject({ "violated-policies": ["ip-1m"] })
    expect([await left(search), await left(maps)]).toEqual([5, 0])
  })

  it("admit a request that one of them skips, and count the other request", async () => {
    const [search, maps] = await mountTwo({ skip: () => true })
    const [counted, skipped] = await ask(search, maps)
    expect(counted?.decision.remaining).toBe(4)
    expect(skipped).toMatchObject({ decision: { allowed: true, policy: "" }, headers: [] })
  })

  it("write headers for the rules that decided, even if the rules change before the store responds", async () => {
    const rule = (limit: number): Rule[] => [{ name: "rule", field: "ip", limit, window: "1m" }]
    const { source, publish } = changingRules(rule(5))
    const inner = memoryStore({ clock: manualClock() })
    let answer = (): void => undefined
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    const take: Store["take"] = async (checks) => {
      await asked
      return inner.take(checks)
    }
    const store = { ...methodsOf(inner), take }
    const guard = await mount({ rules: liveRules(source), onRulesMissing: "allow", store })
    const checking = ask(guard)
    await publish(rule(7))
    answer()
    const [outcome] = await checking
    expect(outcome?.headers[0]).toEqual(["RateLimit-Policy", '"rule";q=5;w=60'])
    expect((await ask(guard))[0]?.headers[0]).toEqual(["RateLimit-Policy", '"rule";q=7;w=60'])
  })

  it("cannot include the same guard twice", async () => {
    const [search] = await mountTwo()
    await expect(ask(search, search)).rejects.toThrow("is the limiter of requests[0] too")
  })
})
