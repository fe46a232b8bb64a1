import { liveRules } from "@sluice/rules"
import { describe, expect, it, vi } from "vitest"
import { RuleSourceError, StoreUnavailableError } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createLimiter } from "../create-limiter.ts"
import type { LimiterOptions } from "../options/options.ts"

const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const CALLS: Rule = { name: "calls", field: "ip", limit: 2, window: "1 minute" }

function open(
  rules: LimiterOptions<RequestFacts>["rules"] = [CALLS],
  more: Partial<LimiterOptions<RequestFacts>> = {},
) {
  const clock = manualClock()
  const limiter = createLimiter<RequestFacts>({
    rules,
    clock,
    logger: { warn() {}, error() {} },
    ...more,
  } as LimiterOptions<RequestFacts>)
  const reports: string[] = []
  const listener = (
    { policy, refusal }: { policy: string; refusal?: string },
    { remoteAddress }: RequestFacts,
  ) => void reports.push(`${policy} ${remoteAddress} ${refusal}`)
  limiter.on("first-refusal", listener)
  /** Sends this number of requests from a client, and returns the reports. */
  const decide = async (times: number, client: RequestFacts = ALICE): Promise<string[]> => {
    for (let i = 0; i < times; i++) await limiter.decide(client)
    return reports.splice(0)
  }
  return { clock, limiter, listener, decide }
}

const alice = ["calls 192.0.2.1 quota"]

describe("the event first-refusal", () => {
  it("is emitted for the first refused request of a client, and not for the next ones", async () => {
    const { decide } = open()
    expect(await decide(2)).toEqual([])
    expect(await decide(1)).toEqual(alice)
    expect(await decide(5)).toEqual([])
    expect(await decide(3, BOB)).toEqual(["calls 192.0.2.2 quota"])
  })

  it("has the arguments of the decision", async () => {
    const { limiter } = open()
    const [decisions, refusals]: [unknown[][], unknown[][]] = [[], []]
    limiter.on("decision", (...args) => void decisions.push(args))
    limiter.on("first-refusal", (...args) => void refusals.push(args))
    for (let i = 0; i < 4; i++) await limiter.decide(ALICE)
    expect(refusals).toEqual([decisions[2]])
    expect(refusals[0]).toMatchObject([{ policy: "calls", allowed: false }, ALICE, { operation: "decide" }])
  })

  it("is emitted again for a client that is still refused one window later", async () => {
    const { clock, decide } = open()
    expect(await decide(3)).toEqual(alice)
    clock.advance(MINUTE - 1)
    expect(await decide(3)).toEqual([])
    clock.advance(1)
    expect(await decide(3)).toEqual(alice)
  })

  it("is emitted again in the next fixed window", async () => {
    const { clock, decide } = open([{ ...CALLS, algorithm: "fixed-window" }])
    clock.advance(MINUTE - 10 - (clock.now() % MINUTE))
    expect(await decide(3)).toEqual(alice)
    clock.advance(9)
    expect(await decide(1)).toEqual([])
    clock.advance(1)
    expect(await decide(3)).toEqual(alice)
  })

  it("is emitted for each rule that refuses, by the client of this rule", async () => {
    const all: Rule = { name: "all", field: "service", limit: 3, window: "1 minute" }
    const { decide } = open([CALLS, all])
    expect(await decide(3)).toEqual(alice)
    expect(await decide(3, BOB)).toEqual(["all 192.0.2.2 quota"])
    expect(await decide(1, { remoteAddress: "192.0.2.3" })).toEqual([])
  })

  it("is emitted for clients that are blocked or on the deny list", async () => {
    const { limiter, decide } = open([{ ...CALLS, deny: ["192.0.2.2"] }])
    await limiter.block(ALICE, { for: "1 hour" })
    expect(await decide(2)).toEqual(["calls 192.0.2.1 blocked"])
    expect(await decide(2, BOB)).toEqual(["calls 192.0.2.2 denied"])
  })

  it.each<readonly [string, Partial<RateRule>]>([
    ["denies the client", { deny: ["192.0.2.1"] }],
    ["has a limit of 0", { limit: () => 0 }],
  ])("is emitted once in a window for a fixed window that %s", async (_what, more) => {
    const { clock, decide } = open([{ ...CALLS, algorithm: "fixed-window", ...more } as Rule])
    expect(await decide(3)).toHaveLength(1)
    clock.advance(MINUTE)
    expect(await decide(3)).toHaveLength(1)
  })

  it("is emitted once for all requests that lack the rule's field", async () => {
    const { decide } = open([{ ...CALLS, field: "header:x-key", onMissing: "deny" }])
    expect(await decide(2)).toEqual(["calls 192.0.2.1 missing-field"])
    expect(await decide(2, BOB)).toEqual([])
  })

  it("is not emitted for a shadow rule, or before rules have loaded", async () => {
    const { decide } = open([{ ...CALLS, shadow: true }])
    expect(await decide(4)).toEqual([])
    const load = () => Promise.reject(new RuleSourceError("down"))
    const unloaded = open(liveRules({ load }), { onRulesMissing: "deny" })
    expect(await unloaded.decide(2)).toEqual([])
    await unloaded.limiter.close()
  })

  it("is emitted for a refusal without the shared store", async () => {
    const store = memoryStore()
    const failing = { ...methodsOf(store), take: () => Promise.reject(new StoreUnavailableError("down")) }
    const { decide } = open([CALLS], { store: failing })
    expect(await decide(5)).toEqual(alice)
  })

  it("costs requests nothing after its listener was removed", async () => {
    const { limiter, listener, decide } = open()
    limiter.off("first-refusal", listener)
    const now = vi.spyOn(performance, "now")
    expect(await decide(3)).toEqual([])
    expect(now).not.toHaveBeenCalled()
    now.mockRestore()
  })
})
