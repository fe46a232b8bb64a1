import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Decision, PolicyCheck, Refusal } from "../decision/decision.ts"
import { createWarner } from "../ground/warnings.ts"
import { compileRejection, type RejectionRule } from "./rejection.ts"

const writerOf = (rules: readonly RejectionRule[]) =>
  compileRejection(
    rules,
    createWarner(undefined, () => undefined),
  )

const MINUTE = 60_000
const DAY = 86_400_000
const NEVER = Number.POSITIVE_INFINITY
const TYPES = "https://iana.org/assignments/http-problem-types#"
const QUOTA = { type: `${TYPES}quota-exceeded`, title: "Quota Exceeded", status: 429 }
const ABUSE = { type: `${TYPES}abnormal-usage-detected`, title: "Abnormal Usage Detected", status: 429 }
const CAPACITY = {
  type: `${TYPES}temporary-reduced-capacity`,
  title: "Temporary Reduced Capacity",
  status: 503,
}
const BAD_REQUEST = { type: "about:blank", title: "Bad Request", status: 400 }

/** A quarter of a second past 12:10. */
const NOW_MS = Date.UTC(2026, 0, 31, 12, 10, 0, 250)

/** A refusal by one rule, and the expected content of the response. */
interface Row {
  readonly rule?: Partial<RejectionRule>
  readonly refusal?: Refusal
  readonly waitMs?: number
  readonly check?: Partial<PolicyCheck>
  readonly retryAfter?: string
  readonly problem?: typeof QUOTA
  readonly detail: string
  /** The rule's message, if the response contains it. */
  readonly rejection?: string
  readonly retry?: object
}

const BACKOFF = { kind: "exponential-backoff", multiplier: 2, jitter: 0.5 }
const MESSAGES = ["retry-with-exponential-backoff", "retry-with-fixed-time", "exhausted-daily-limit"] as const
const [backoff, fixed, daily] = MESSAGES
const used = (time: string): string => `The quota is used up. Try again in ${time}.`
const costly = (cost: number, most: number): string =>
  `This request costs ${cost} and never succeeds. The largest cost that is accepted is ${most}.`

describe.each<[string, Row]>([
  ["a used-up quota", { waitMs: 11_001, retryAfter: "12", detail: used("12 seconds") }],
  ["a quota with a wait of whole seconds", { waitMs: 12_000, retryAfter: "12", detail: used("12 seconds") }],
  ["a quota with a wait of one millisecond", { waitMs: 1, retryAfter: "1", detail: used("1 second") }],
  [
    "a quota with a message for people",
    {
      rule: { rejectionMessage: 'Buy "pro".' },
      waitMs: 2000,
      retryAfter: "2",
      detail: used("2 seconds"),
      rejection: 'Buy "pro".',
    },
  ],
  [
    "a quota with exponential backoff up to the window",
    {
      rule: { rejectionMessage: backoff, windowMs: 59_001 },
      waitMs: 7000,
      retryAfter: "7",
      detail: used("7 seconds"),
      rejection: "retry-with-exponential-backoff",
      retry: { ...BACKOFF, initialDelaySeconds: 7, maxDelaySeconds: 60 },
    },
  ],
  [
    "a quota with exponential backoff that starts beyond the window",
    {
      rule: { rejectionMessage: backoff, windowMs: MINUTE },
      waitMs: 90_000,
      retryAfter: "90",
      detail: used("90 seconds"),
      rejection: "retry-with-exponential-backoff",
      retry: { ...BACKOFF, initialDelaySeconds: 90, maxDelaySeconds: 90 },
    },
  ],
  [
    "a quota with a fixed retry time",
    {
      rule: { rejectionMessage: fixed },
      waitMs: 2500,
      retryAfter: "3",
      detail: used("3 seconds"),
      rejection: "retry-with-fixed-time",
      retry: { kind: "fixed", afterSeconds: 3 },
    },
  ],
  [
    "a daily limit, whose retry time is rounded up from the exact wait",
    {
      rule: { rejectionMessage: daily, windowMs: DAY },
      waitMs: 42_599_500, // 11 h 49 min 59.5 s after 12:10:00.25
      retryAfter: "42600",
      detail: used("42600 seconds"),
      rejection: "exhausted-daily-limit",
      retry: { kind: "at", at: "2026-02-01T00:00:00.000Z", afterSeconds: 42_600 },
    },
  ],
  [
    "a daily limit that ends after the latest possible date",
    {
      rule: { rejectionMessage: daily },
      waitMs: 8.64e15,
      retryAfter: "8640000000000",
      detail: used("100000000 days"),
      rejection: "exhausted-daily-limit",
      retry: { kind: "at", at: "+275760-09-13T00:00:00.000Z", afterSeconds: 8_640_000_000_000 },
    },
  ],
  ["a quota that is never renewed", { detail: "The quota is used up." }],
  [
    "a cost above the limit",
    {
      refusal: "cost",
      rule: { cost: 1, rejectionMessage: "Ask for less." },
      check: { limit: 5, cost: 7 },
      detail: costly(7, 5),
      rejection: "Ask for less.",
    },
  ],
  [
    "a cost above the limit of a rule with a cost",
    { refusal: "cost", rule: { cost: 3 }, check: { limit: 10, cost: 12 }, detail: costly(4, 3) },
  ],
  ...MESSAGES.map((rejectionMessage): [string, Row] => [
    `a cost above the limit, without the message ${rejectionMessage}`,
    { refusal: "cost", rule: { rejectionMessage }, check: { limit: 5, cost: 7 }, detail: costly(7, 5) },
  ]),
  [
    "the deny list",
    {
      refusal: "denied",
      rule: { rejectionMessage: "Write to support." },
      problem: ABUSE,
      detail: "Requests like this one are not accepted.",
      rejection: "Write to support.",
    },
  ],
  [
    "a penalty",
    {
      refusal: "penalty",
      rule: { rejectionMessage: fixed },
      waitMs: 600_000,
      retryAfter: "600",
      problem: ABUSE,
      detail: "Too many requests were refused, so none is accepted for a while. Try again in 600 seconds.",
      rejection: "retry-with-fixed-time",
      retry: { kind: "fixed", afterSeconds: 600 },
    },
  ],
  [
    "a manual block",
    {
      refusal: "blocked",
      waitMs: 90_500,
      retryAfter: "91",
      problem: ABUSE,
      detail: "This client is blocked. Try again in 91 seconds.",
    },
  ],
  [
    "a missing field, without the message about the quota",
    {
      refusal: "missing-field",
      rule: { rejectionMessage: "Buy pro." },
      check: { field: "header:x-api-key" },
      problem: BAD_REQUEST,
      detail: 'The request must have "header:x-api-key" to be counted.',
    },
  ],
  [
    "a failing store, without the message about the quota",
    {
      refusal: "store-failure",
      rule: { rejectionMessage: daily },
      waitMs: 1000,
      retryAfter: "1",
      problem: CAPACITY,
      detail: "The quota cannot be checked at the moment. Try again in 1 second.",
    },
  ],
  [
    "a store that fails for an unknown time",
    { refusal: "store-failure", problem: CAPACITY, detail: "The quota cannot be checked at the moment." },
  ],
])("a refusal because of %s", (_case, row) => {
  const { refusal = "quota", waitMs = NEVER, problem = QUOTA, retryAfter, detail, rejection, retry } = row
  const decision = refused([refusing("ip-1m", refusal, waitMs, row.check)])
  const timed = retryAfter === undefined ? {} : { "Retry-After": retryAfter }
  // A refusal because of a missing field names no rule, because no quota is used up.
  const isNamed = problem !== BAD_REQUEST

  it("is described as a JSON problem", () => {
    const answer = writerOf([rule(row.rule)])(decision, undefined, () => NOW_MS)
    expect(answer.status).toBe(problem.status)
    expect(Object.fromEntries(answer.headers)).toEqual({
      ...timed,
      "Cache-Control": "no-store",
      "Content-Type": "application/problem+json",
    })
    const violated = isNamed ? ["ip-1m"] : undefined
    expect(JSON.parse(answer.body)).toEqual({
      ...problem,
      "violated-policies": violated,
      detail,
      rejection,
      retry,
    })
  })

  it("is described as plain text", () => {
    const answer = writerOf([rule(row.rule)])(decision, "text/html", () => NOW_MS)
    expect(answer.status).toBe(problem.status)
    expect(Object.fromEntries(answer.headers)).toEqual({
      ...timed,
      "Cache-Control": "no-store",
      "Content-Type": "text/plain; charset=utf-8",
    })
    const lines = [isNamed ? `${problem.title}: ip-1m` : problem.title, detail, rejection]
    expect(answer.body).toBe(`${lines.filter((line) => line !== undefined).join("\n")}\n`)
  })
})

describe("a rejection by several rules", () => {
  it("names the rules that refused, and describes the strictest of them", () => {
    const reject = writerOf([
      rule({ name: "burst", rejectionMessage: "retry-with-fixed-time" }),
      rule({ name: "day", rejectionMessage: "exhausted-daily-limit" }),
      rule({ name: "fine", rejectionMessage: "fine" }),
      rule({ name: "tried", rejectionMessage: "tried" }),
    ])
    const decision = refused(
      [
        refusing("burst", "quota", 3000),
        refusing("tried", "quota", 9000, { shadow: true }),
        admitted("fine"),
        refusing("day", "quota", 60_000),
      ],
      "day",
    )
    const asJson = JSON.parse(reject(decision, undefined, () => NOW_MS).body)
    expect(asJson["violated-policies"]).toEqual(["burst", "day"])
    expect(asJson.rejection).toBe("exhausted-daily-limit")
    expect(asJson.retry).toEqual({ kind: "at", at: "2026-01-31T12:11:01.000Z", afterSeconds: 60 })
    expect(reject(decision, "text/plain", () => NOW_MS).body).toBe(
      "Quota Exceeded: burst, day\nThe quota is used up. Try again in 60 seconds.\nexhausted-daily-limit\n",
    )
  })

  it("contains the largest cost that all of them accept", () => {
    const rules = [rule({ name: "a", cost: 2 }), rule({ name: "b", cost: 1 }), rule({ name: "c", cost: 5 })]
    const checks = [
      refusing("a", "cost", NEVER, { limit: 11, cost: 20 }), // 5 at most
      refusing("b", "cost", NEVER, { limit: 8, cost: 10 }), // 8 at most
      refusing("c", "denied", NEVER, { limit: 5, cost: 50 }), // no cost would help
    ]
    for (const order of [checks, checks.toReversed()]) {
      const { detail } = JSON.parse(writerOf(rules)(refused(order, "a"), undefined, neverAsked).body)
      expect(detail).toBe("This request costs 10 and never succeeds. The largest cost that is accepted is 5.")
    }
  })

  it("are answered with the unit of a cost that is not in requests", () => {
    const check = { ...refusing("a", "cost", NEVER, { limit: 1_000, cost: 1_500 }), unit: "tokens" }
    const { detail } = JSON.parse(
      writerOf([rule({ name: "a" })])(refused([check]), undefined, neverAsked).body,
    )
    expect(detail).toBe(
      "This request costs 1500 tokens and never succeeds. The largest cost that is accepted is 1000.",
    )
  })

  it("contains the wait for permits only if no rate refuses for longer", () => {
    const reject = writerOf([rule({ name: "rpm" }), rule({ name: "client" }), rule({ name: "all" })])
    const rpm = refusing("rpm", "quota", 30_000)
    const client = refusing("client", "in-flight", 1_000, { limit: 5 })
    const all = refusing("all", "in-flight", 1_000, { limit: 100 })
    const read = (decision: Decision) => {
      const { status, headers, body } = reject(decision, undefined, neverAsked)
      const { type, detail, "violated-policies": violated } = JSON.parse(body)
      return [status, Object.fromEntries(headers)["Retry-After"], type, detail, violated]
    }
    const both =
      "5 requests are already in progress, which is the most at a time. Try again when one of them has finished."
    expect(read(refused([client, all]))).toEqual([429, "1", QUOTA.type, both, ["client", "all"]])
    const longer = "The quota is used up. Try again in 30 seconds."
    expect(read(refused([client, rpm], "rpm"))).toEqual([429, "30", QUOTA.type, longer, ["client", "rpm"]])
    const shorter = { ...rpm, retryAfterMs: 500 }
    const whole = both.replace("5", "100")
    expect(read(refused([shorter, all], "all"))).toEqual([429, "1", QUOTA.type, whole, ["rpm", "all"]])
  })

  it.each([
    [1, 1, "1 request is"],
    [5, 1, "5 requests are"],
    [5, 2, "2 requests are"],
    [3, 2, "1 request is"],
  ])("counts requests and not permits: a limit of %d with a rule cost of %d", (limit, cost, already) => {
    const check = refusing("a", "in-flight", 1_000, { limit, cost })
    const { detail } = JSON.parse(
      writerOf([rule({ name: "a", cost })])(refused([check]), undefined, neverAsked).body,
    )
    expect(detail).toContain(`${already} already in progress, `)
  })

  it("lists each missing field once", () => {
    const checks = [
      refusing("a", "missing-field", NEVER, { field: "user_id" }),
      refusing("b", "missing-field", NEVER, { field: "plan" }),
      refusing("c", "missing-field", NEVER, { field: "user_id" }),
      refusing("d", "denied", NEVER),
    ]
    const { detail } = JSON.parse(writerOf([])(refused(checks), undefined, neverAsked).body)
    expect(detail).toBe('The request must have "user_id" and "plan" to be counted.')
  })
})

it("a rejection is written even for a rule that was not passed to compileRejection", () => {
  const decision = refused([refusing('o"ther', "cost", NEVER, { limit: 5, cost: 7 })])
  expect(JSON.parse(writerOf([rule()])(decision, undefined, neverAsked).body)).toEqual({
    ...QUOTA,
    detail: "This request costs 7 and never succeeds. The largest cost that is accepted is 5.",
    "violated-policies": ['o"ther'],
  })
})

it("a refusal without a reason is described as a used-up quota", () => {
  const { refusal: _, ...decision } = refused([refusing("ip-1m", "quota", 1000)])
  expect(JSON.parse(writerOf([rule()])(decision, undefined, neverAsked).body)).toMatchObject(QUOTA)
})

it("the clock is not read if the response contains no point in time", () => {
  for (const rejectionMessage of [
    "retry-with-exponential-backoff",
    "retry-with-fixed-time",
    "soon",
    undefined,
  ]) {
    const reject = writerOf([rule({ rejectionMessage })])
    expect(reject(refused([refusing("ip-1m", "quota", 1000)]), undefined, neverAsked).status).toBe(429)
  }
})

describe("consecutive refusals", () => {
  const OR_NONE = [undefined, "Buy pro.", ...MESSAGES]
  const KINDS: Refusal[] = ["quota", "penalty", "cost", "denied", "missing-field", "store-failure"]

  it.each([
    ["a longer wait after a shorter one", 11_000, 12_000, "12 seconds"],
    ["a finite wait after an infinite one", NEVER, 1000, "1 second"],
    ["an infinite wait after a finite one", 1000, NEVER, undefined],
  ])("each contain their own wait: %s", (_what, before, waitMs, told) => {
    for (const rejectionMessage of ["Buy pro.", "retry-with-fixed-time"]) {
      const reject = writerOf([rule({ rejectionMessage })])
      reject(refused([refusing("ip-1m", "quota", before)]), undefined, neverAsked)
      const { body } = reject(refused([refusing("ip-1m", "quota", waitMs)]), undefined, neverAsked)
      const { detail, retry } = JSON.parse(body)
      expect(detail).toBe(`The quota is used up.${told === undefined ? "" : ` Try again in ${told}.`}`)
      if (told === undefined || rejectionMessage === "Buy pro.") expect(retry).toBeUndefined()
      else expect(retry).toEqual({ kind: "fixed", afterSeconds: waitMs / 1000 })
    }
  })

  it("name all rules that refused, even after one of them has refused alone", () => {
    const reject = writerOf([rule({ name: "a" }), rule({ name: "b" })])
    const alone = refusing("a", "quota", 2000)
    const both = [alone, refusing("b", "quota", 1000)]
    const violated = [[alone], both, [alone], [alone, admitted("b")]].map(
      (checks) => JSON.parse(reject(refused(checks), undefined, neverAsked).body)["violated-policies"],
    )
    expect(violated).toEqual([["a"], ["a", "b"], ["a"], ["a"]])
  })

  it("each contain their own reason, even if their waits are equal", () => {
    const reject = writerOf([rule()])
    const kinds: Refusal[] = ["quota", "penalty", "store-failure", "penalty", "denied", "quota"]
    const titles = kinds.map(
      (kind) =>
        JSON.parse(reject(refused([refusing("ip-1m", kind, 1000)]), undefined, neverAsked).body).title,
    )
    const [quota, abuse, capacity] = [QUOTA.title, ABUSE.title, CAPACITY.title]
    expect(titles).toEqual([quota, abuse, capacity, abuse, abuse, quota])
  })

  it("each contain their own retry time, even if their waits are equal in whole seconds", () => {
    const reject = writerOf([rule({ rejectionMessage: "exhausted-daily-limit" })])
    const at = (waitMs: number, nowMs: number) =>
      JSON.parse(reject(refused([refusing("ip-1m", "quota", waitMs)]), undefined, () => nowMs).body).retry.at
    // The clock shows 12:10:00.250, so 2.5 seconds and 3 seconds later round up to different seconds.
    expect(at(2_500, NOW_MS)).toBe("2026-01-31T12:10:03.000Z")
    expect(at(3_000, NOW_MS)).toBe("2026-01-31T12:10:04.000Z")
    expect(at(3_000, NOW_MS + 60_000)).toBe("2026-01-31T12:11:04.000Z")
  })

  it("get the same response as a first refusal, whatever came before", () => {
    const step = fc.record({
      name: fc.constantFrom("a", "b", "unknown"),
      kind: fc.constantFrom(...KINDS),
      waitMs: fc.constantFrom(1, 999, 1000, 1001, 2000, NEVER),
      nowMs: fc.constantFrom(NOW_MS, NOW_MS + 900, NOW_MS + DAY),
      beside: fc.boolean(),
      accept: fc.constantFrom(undefined, "application/json", "text/plain"),
    })
    const message = fc.constantFrom(...OR_NONE)
    fc.assert(
      fc.property(message, message, fc.array(step, { maxLength: 6 }), (ofA, ofB, steps) => {
        const rules = [
          rule({ name: "a", rejectionMessage: ofA }),
          rule({ name: "b", rejectionMessage: ofB }),
          rule({ name: "other" }),
        ]
        const reject = writerOf(rules)
        for (const { name, kind, waitMs, nowMs, beside, accept } of steps) {
          const own = refusing(name, kind, waitMs, { field: "x", limit: 5, cost: 7 })
          const decision = refused(beside ? [refusing("other", "quota", 1), own] : [own], name)
          const alone = writerOf(rules)(decision, accept, () => nowMs)
          expect(reject(decision, accept, () => nowMs)).toEqual(alone)
        }
      }),
    )
  })
})

it("a rejection has a valid body and valid headers, whatever strings the rule contains", () => {
  const anyText = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.constantFrom('"', "\\", "\r\nSet-Cookie: a=b", "\u2028"),
  )
  const refusal = fc.constantFrom<Refusal>(
    "quota",
    "penalty",
    "cost",
    "denied",
    "missing-field",
    "store-failure",
  )
  fc.assert(
    fc.property(
      anyText,
      anyText,
      anyText,
      refusal,
      fc.maxSafeNat(),
      fc.boolean(),
      (name, message, field, kind, ms, json) => {
        const reject = writerOf([rule({ name, rejectionMessage: message })])
        const waitMs = ["quota", "penalty", "store-failure"].includes(kind) ? ms + 1 : NEVER
        const decision = refused([refusing(name, kind, waitMs, { field, limit: 5, cost: 7 })])
        const { status, headers, body } = reject(decision, json ? "*/*" : "text/plain", () => NOW_MS)
        for (const [header, value] of headers)
          expect(`${header}: ${value}`).toMatch(/^[A-Za-z-]+: [\x20-\x7e]+$/)
        const retryAfter = headers.find(([header]) => header === "Retry-After")?.[1]
        if (waitMs === NEVER) expect(retryAfter).toBeUndefined()
        else expect(Number(retryAfter)).toBe(Math.ceil(waitMs / 1000))
        const told = [...(kind === "missing-field" ? [field] : [name]), ...(status === 429 ? [message] : [])]
        if (!json) {
          for (const part of told) expect(body).toContain(part)
          return
        }
        const problem = JSON.parse(body)
        expect(problem.status).toBe(status)
        expect(problem["violated-policies"]).toEqual(kind === "missing-field" ? undefined : [name])
        expect(problem.rejection).toBe(status === 429 ? message : undefined)
        if (kind === "missing-field") expect(problem.detail).toContain(`"${field}"`)
      },
    ),
  )
})

function neverAsked(): number {
  throw new Error("the clock was asked")
}

function rule(members: Partial<RejectionRule> = {}): RejectionRule {
  return { name: "ip-1m", windowMs: MINUTE, cost: 1, ...members }
}

function admitted(policy: string): PolicyCheck {
  return {
    policy,
    unit: "requests",
    algorithm: "sliding-window",
    limit: 100,
    windowMs: MINUTE,
    remaining: 1,
    cost: 1,
    allowed: true,
    retryAfterMs: 0,
    nextUnitAfterMs: 1,
    resetAfterMs: 1,
    delayMs: 0,
    overLimit: false,
    shadow: false,
    ageMs: 0,
  }
}

function refusing(
  policy: string,
  refusal: Refusal,
  retryAfterMs: number,
  members: Partial<PolicyCheck> = {},
): PolicyCheck {
  return { ...admitted(policy), remaining: 0, allowed: false, refusal, retryAfterMs, ...members }
}

/**
 * Returns a decision in which `policy` binds, by default the first check. Other members have unusual values on purpose.
 */
function refused(checks: readonly PolicyCheck[], policy: string = checks[0]?.policy ?? ""): Decision {
  const binding = checks.find((check) => check.policy === policy)
  return {
    allowed: false,
    policy,
    limit: -1,
    remaining: -1,
    cost: -1,
    retryAfterMs: binding?.retryAfterMs ?? -1,
    resetAfterMs: -1,
    delayMs: -1,
    overLimit: false,
    degraded: false,
    ...(binding?.refusal === undefined ? {} : { refusal: binding.refusal }),
    shadowed: [],
    checks,
  }
}
