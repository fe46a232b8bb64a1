import { type FileRulesOptions, fileRules } from "@sluice/rules"
import { describe, expect, expectTypeOf, it } from "vitest"
import type { HeaderLine } from "../../ground/answer.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Rule, RuleMatch } from "../../rules/rule.ts"
import { type MemoryStoreOptions, memoryStore } from "../../stores/memory/memory-store.ts"
import { createLimiter } from "../create-limiter.ts"
import type { AmountOptions, Limiter } from "../interface/limiter.ts"
import type { OnRejected } from "./answer-options.ts"
import type { LimiterOptions } from "./options.ts"

/** The same members, all required and undefined. */
type Undefined<Options> = { readonly [Name in keyof Required<Options>]: undefined }

const NO_MATCH: Undefined<RuleMatch> = {
  methods: undefined,
  path: undefined,
  fields: undefined,
  when: undefined,
}
const NO_MEMBERS: Undefined<Omit<Rule, "limit" | "window" | "field">> = {
  name: undefined,
  per: undefined,
  timeZone: undefined,
  anchor: undefined,
  concurrent: undefined,
  hold: undefined,
  onMissing: undefined,
  algorithm: undefined,
  align: undefined,
  buckets: undefined,
  burst: undefined,
  refill: undefined,
  throttle: undefined,
  countRejected: undefined,
  penalty: undefined,
  notify: undefined,
  cost: undefined,
  counts: undefined,
  match: undefined,
  allow: undefined,
  deny: undefined,
  overrides: undefined,
  rejectionMessage: undefined,
  rejection: undefined,
  shadow: undefined,
  onStoreFailure: undefined,
}
const NO_OPTIONS: Undefined<Omit<LimiterOptions<RequestFacts>, keyof Rule>> = {
  rules: undefined,
  defaultRules: undefined,
  onRulesMissing: undefined,
  service: undefined,
  store: undefined,
  trustedProxies: undefined,
  clientIpHeader: undefined,
  ipv6Prefix: undefined,
  hashKeys: undefined,
  hashSecret: undefined,
  fields: undefined,
  units: undefined,
  priority: undefined,
  skip: undefined,
  callbackTimeoutMs: undefined,
  onRejected: undefined,
  refundWhen: undefined,
  headers: undefined,
  storeTimeoutMs: undefined,
  instances: undefined,
  enabled: undefined,
  logger: undefined,
  clock: undefined,
}
const NO_STORE_OPTIONS: Undefined<MemoryStoreOptions> = { maxKeys: undefined, clock: undefined }
const NO_FILE_OPTIONS: Undefined<FileRulesOptions> = {
  maxBytes: undefined,
  pollMs: undefined,
  required: undefined,
}
const NO_COST: Undefined<AmountOptions> = { cost: undefined, units: undefined }

const LIMIT = { limit: 5, window: "1m" } as const
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }

describe("a member that is undefined counts as absent", () => {
  it("in the options of a limiter, whose inline rule then counts by address", async () => {
    const options: LimiterOptions<RequestFacts> = { ...NO_OPTIONS, ...NO_MEMBERS, ...LIMIT }
    const limiter = createLimiter({ ...options, clock: { now: () => 0, wait: undefined } })
    expect(await limiter.decide(ALICE, NO_COST)).toMatchObject({ policy: "ip-1m", remaining: 4 })
    await limiter.reset(ALICE, { rules: undefined })
    await limiter.ready({ signal: undefined })
    expect(await limiter.peek(ALICE, NO_COST)).toMatchObject({ remaining: 5 })
    await limiter.close()
  })

  it("in a rule of a list, and in its match", async () => {
    const rule: Rule<RequestFacts> = { ...NO_MEMBERS, ...LIMIT, field: "service" }
    const matched: Rule<RequestFacts> = { ...rule, name: "matched", match: NO_MATCH }
    const limiter = createLimiter({ rules: [rule, matched], clock: manualClock() })
    const { checks } = await limiter.decide(ALICE)
    expect(checks.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ["service-1m", 4],
      ["matched", 4],
    ])
    await limiter.close()
  })

  it("in the options of a memory store and of rules in a file", () => {
    memoryStore(NO_STORE_OPTIONS).close()
    expect(fileRules("rules.yaml", NO_FILE_OPTIONS).name).toContain("rules.yaml")
  })
})

describe("the types of a limiter", () => {
  interface AppRequest {
    readonly user: string
  }
  const limiter: Limiter<AppRequest> = createLimiter<AppRequest>({
    ...LIMIT,
    onMissing: "skip",
    clock: manualClock(),
  })

  it("reject unknown event names and extra arguments", () => {
    const listener = (): void => undefined
    limiter.on("decision", (decision, request) => `${decision.policy} ${request.user}`)
    // @ts-expect-error misspelt
    expect(() => limiter.on("decisions", listener)).toThrow(
      'on: "decisions" is not an event; accepted: decision, ',
    )
    // @ts-expect-error misspelt
    limiter.off("degrade", listener)
    // @ts-expect-error recovered has no arguments
    limiter.on("recovered", (_error: Error) => undefined)
  })

  it("accept the facts of a request if nothing is counted", async () => {
    await limiter.reset(ALICE)
    expect(await limiter.peek(ALICE)).toMatchObject({ remaining: 5 })
    // @ts-expect-error the request is missing
    await limiter.decide(ALICE)
    // @ts-expect-error misspelt
    await limiter.peek({ remoteAdress: "192.0.2.1" })
  })

  it("allow any status from onRejected", () => {
    type Own = OnRejected<AppRequest>
    expectTypeOf<Parameters<Own>[1]["status"]>().toEqualTypeOf<number>()
    expectTypeOf<() => { status: 403; headers: HeaderLine[]; body: string }>().toExtend<Own>()
    expectTypeOf<() => Promise<{ status: number; headers: []; body: string }>>().toExtend<Own>()
    expectTypeOf<() => { status: "403"; headers: []; body: string }>().not.toExtend<Own>()
    expectTypeOf<() => { status: 403; headers: Headers; body: string }>().not.toExtend<Own>()
  })

  it("require limit and window together, for an inline rule", () => {
    // @ts-expect-error a limit needs a window
    expect(() => createLimiter({ limit: 5 })).toThrow("window: is missing")
    // @ts-expect-error a window needs a limit
    expect(() => createLimiter({ window: "1m" })).toThrow("limit: is missing")
    // @ts-expect-error a window is not undefined
    expect(() => createLimiter({ limit: 5, window: undefined })).toThrow("window: is missing")
    const limited: LimiterOptions<RequestFacts> = LIMIT
    const listed: LimiterOptions<RequestFacts> = { rules: [{ ...LIMIT, field: "ip" }] }
    for (const options of [limited, listed]) expect(() => createLimiter(options)).not.toThrow()
  })

  it("reject undefined for a required member", () => {
    // @ts-expect-error a rule has a limit
    const rule: Rule = { field: "ip", limit: undefined, window: "1m" }
    expect(() => createLimiter({ rules: [rule] })).toThrow("rules[0].limit: is missing")
  })
})
