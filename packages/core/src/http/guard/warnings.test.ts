import { liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { createWarner, type Logger, type WarningCode } from "../../ground/warnings.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"

const RULE = { limit: 1, window: "1m" }
const fail = (): never => {
  throw new Error("oops")
}

/** Returns the codes and messages that a guard logs while it checks each request twice. */
async function saidOf(
  options: LimiterOptions<RequestFacts>,
  requests: readonly RequestFacts[] = [{ remoteAddress: "192.0.2.1" }],
  atStart = true,
): Promise<[string, string][]> {
  const said: [string, string][] = []
  const clock = manualClock()
  const tell = ({ code }: { code: string }, message: string) => said.push([code, message])
  const all = { clock, logger: { warn: tell, error: tell }, ...options } as LimiterOptions<RequestFacts>
  const guard = createGuard<RequestFacts>(all)
  onTestFinished(() => guard.close())
  if (atStart) await guard.limiter.ready().catch(() => undefined)
  // Create two other limiters first, because the third limiter of a row causes the warning.
  else for (let i = 0; i < 2; i++) createGuard<RequestFacts>(all).check(requests[0] as RequestFacts, {})
  // Check copies, because a guard stores its outcome on the request.
  for (const request of [...requests, ...requests].map((each) => ({ ...each }))) {
    const outcome = await guard.check(request, request)
    if (outcome.rejection !== undefined) await guard.answer(outcome, request, undefined)
    guard.reportStatus(request, 200)
    clock.advance(10_000)
  }
  return said
}

function failingAtFirst(): Store {
  const store = memoryStore({ clock: manualClock() })
  let times = 0
  return {
    ...methodsOf(store),
    take: (checks) => (times++ === 0 ? fail() : store.take(checks)),
  }
}

const brokenSource: RuleSource = { load: async () => fail() }

type Trigger = [
  code: WarningCode,
  mend: string,
  options: LimiterOptions<RequestFacts>,
  requests?: RequestFacts[] | undefined,
  atStart?: boolean,
]

const TRIGGERS: Trigger[] = [
  [
    "SLUICE_ADDRESS_UNKNOWN",
    "A request had no client address: no remoteAddress was given, its connection was closed, or it came through a Unix " +
      "socket. Rules by address handle such requests by their onMissing; by default, all of them share one counter. Pass remoteAddress, or set trustedProxies to 1 behind a proxy on a Unix socket",
    RULE,
    [{ headers: {} }],
  ],
  [
    "SLUICE_FORWARDED_HEADER_IGNORED",
    "the header x-forwarded-for, which is ignored because no proxy is trusted. All clients behind a proxy count as one. Set trustedProxies",
    RULE,
    [{ remoteAddress: "10.0.0.1", headers: { "x-forwarded-for": "192.0.2.1" } }],
  ],
  [
    "SLUICE_FORWARDED_HEADER_MISSING",
    "trustedProxies is set, but",
    { limit: 1_000, window: "1m", trustedProxies: 1 },
    Array.from({ length: 100 }, () => ({ remoteAddress: "10.0.0.1", headers: {} })),
  ],
  ["SLUICE_CREATED_IN_HANDLER", "Create the limiter once, when the app starts", RULE, undefined, false],
  [
    "SLUICE_CLIENT_CHOSEN_FIELD",
    'uses "user_id", which is read from the request, so clients can choose its value. Set fields: {',
    { ...RULE, field: "user_id" },
    [{ remoteAddress: "192.0.2.1", headers: {} }],
  ],
  [
    "SLUICE_CLIENT_CHOSEN_FIELD",
    'uses "userId", which is read from the request, so clients can choose its value. Did you mean "user_id" of your fields?',
    { ...RULE, field: "userId", fields: { user_id: () => 7, plan: () => "pro" } },
    [{ remoteAddress: "192.0.2.1", headers: {} }],
  ],
  [
    "SLUICE_WINDOW_WITHOUT_UNIT",
    'The window of rule "ip-60ms" is the number 60, which means 60 milliseconds. Write "60 seconds", or "60 ms" if you mean milliseconds.',
    { limit: 1, window: 60 },
  ],
  [
    "SLUICE_METHOD_UNKNOWN",
    'In match.methods of rule "ip-1m", "PSOT" is not an HTTP method that Node knows; did you mean "POST"?',
    { limit: 1, window: "1 minute", match: { methods: ["get", "psot", "psto"] } },
  ],
  [
    "SLUICE_PATH_DOUBTFUL",
    'In match.path of rule "ip-1m", "{id}" is the optional text "id", not a parameter; did you mean ":id"?',
    { limit: 1, window: "1 minute", match: { path: "/users/{id}/posts{/:post}" } },
  ],
  [
    "SLUICE_BODY_NOT_PARSED",
    'counts by "body:user", but no body parser has run before the limiter. Mount the body parser before the limiter',
    { ...RULE, field: "body:user" },
    [{ remoteAddress: "192.0.2.1", headers: { "content-length": "5" } }],
  ],
  [
    "SLUICE_ROUTE_UNKNOWN",
    "does not know the route where the limiter is mounted. Mount the limiter on the route",
    { ...RULE, field: "route" },
  ],
  ["SLUICE_EXTRACTOR_FAILED", "treat it as missing", { ...RULE, field: "user", fields: { user: fail } }],
  [
    "SLUICE_EXTRACTOR_FAILED",
    'Reading field "query:user" for rule "query:user-1m" failed: Error: oops. The field counts as missing.',
    { ...RULE, field: "query:user" },
    [{ remoteAddress: "192.0.2.1", query: Object.defineProperty({}, "user", { get: fail }) }],
  ],
  ["SLUICE_INVALID_COST", "0 or a positive whole number", { ...RULE, cost: fail }],
  ["SLUICE_INVALID_LIMIT", "0 or a positive whole number", { ...RULE, limit: fail }],
  [
    "SLUICE_CALLBACK_FAILED",
    "skip failed: Error: oops. It must return true or false, or a promise of it; otherwise the request is counted.",
    { ...RULE, skip: fail },
  ],
  [
    "SLUICE_CALLBACK_FAILED",
    "refundWhen failed: Error: oops. It must return true or false, not a promise; otherwise the units stay taken.",
    { ...RULE, refundWhen: fail },
  ],
  ["SLUICE_CALLBACK_FAILED", "The standard response is sent", { ...RULE, onRejected: () => ({}) as never }],
  [
    "SLUICE_RULES_REJECTED",
    "None of its rules are in force",
    { rules: liveRules(brokenSource), onRulesMissing: "allow" },
  ],
  [
    "SLUICE_STORE_TOO_SMALL",
    "evicted a counter that was still in use, so its client may exceed the limit. Raise memoryStore({ maxKeys })",
    { ...RULE, store: memoryStore({ maxKeys: 1, clock: manualClock() }) },
    [1, 2, 3].map((host) => ({ remoteAddress: `192.0.2.${host}` })),
  ],
]

describe("a warning", () => {
  it.each(TRIGGERS)(
    "with the code %s is logged once and contains the text: %s",
    async (code, mend, options, requests, atStart) => {
      const said = await saidOf(options, requests, atStart)
      expect(said.map(([each]) => each)).toEqual([code])
      const message = said[0]?.[1] as string
      expect(message).toContain(mend)
      expect(message).toMatch(new RegExp(` \\(@sluice/core/errors/${code.toLowerCase()}\\.md\\)$`))
    },
  )

  it("about a failing store is followed by a second warning when the store has recovered", async () => {
    const said = await saidOf({ ...RULE, store: failingAtFirst() })
    expect(said.map(([code]) => code)).toEqual(["SLUICE_DEGRADED", "SLUICE_RECOVERED"])
    expect(said[0]?.[1]).toContain('each process admits up to 1 of 1 under rule "ip-1m"')
  })

  it("about stale rules is logged once, after the warning with the reason", async () => {
    const request = { remoteAddress: "192.0.2.1" }
    const said = await saidOf(
      { rules: liveRules({ ...brokenSource, pollMs: 200 }), onRulesMissing: "allow" },
      [request, { ...request }],
    )
    expect(said.map(([code]) => code)).toEqual(["SLUICE_RULES_REJECTED", "SLUICE_RULES_STALE"])
    expect(said[1]?.[1]).toContain("loading has failed for")
    expect(said[1]?.[1]).toContain("@sluice/core/errors/sluice_rules_stale.md")
  })

  it("about an ignored header is not logged if trustedProxies is 0", async () => {
    const request = { remoteAddress: "10.0.0.1", headers: { "x-forwarded-for": "192.0.2.1" } }
    expect(await saidOf({ ...RULE, trustedProxies: 0 }, [request])).toEqual([])
  })

  it("about an unknown method is not logged for Node's methods, in upper or lower case", async () => {
    const match = { methods: ["get", "Post", "M-SEARCH"] }
    expect(await saidOf({ limit: 1, window: "1 minute", match })).toEqual([])
  })

  it.each([1_000, "60 ms", "1ms"])(
    "about a missing unit is not logged for a window of %j",
    async (window) => {
      expect(await saidOf({ limit: 1, window })).toEqual([])
    },
  )

  it("is not logged by a limiter without problems", async () => {
    const request = { method: "GET", url: "/", headers: {}, remoteAddress: "192.0.2.1" }
    expect(
      await saidOf({ ...RULE, cost: () => 1, skip: () => false, refundWhen: () => false }, [request]),
    ).toEqual([])
  })
})

describe("the warning about a limiter that is mounted too late", () => {
  it.each([
    [
      undefined,
      "A request was refused after its response had begun",
      "Mount the limiter before every handler that writes to the response.",
    ],
    [
      "GET /login and every other route",
      "The limiter is mounted after GET /login and every other route, so it only limits ",
      "Mount it before the routes.",
    ],
  ])(
    "is logged once, with the reason and an instruction (earlier routes: %s)",
    async (routes, reason, mend) => {
      const said: string[] = []
      const logger: Logger = { warn: (_fields, message) => void said.push(message), error() {} }
      const guard = createGuard<object>({ ...RULE, logger })
      onTestFinished(() => guard.close())
      for (let time = 0; time < 2; time++) guard.warnMountedTooLate(routes)
      const [told, ...others] = said
      expect([told?.slice(0, reason.length), others]).toEqual([reason, []])
      expect(told).toContain(mend)
    },
  )
})

describe("a warner", () => {
  const setUp = (failing = false) => {
    const heard: unknown[] = []
    const logged: unknown[][] = []
    const log =
      (level: string): Logger["warn"] =>
      (...args) => {
        logged.push([level, ...args])
        if (failing) fail()
      }
    return {
      heard,
      logged,
      warner: createWarner({ warn: log("warn"), error: log("error") }, (w) => heard.push(w)),
    }
  }

  it("logs each code once per subject", () => {
    const { heard, warner } = setUp()
    for (const subject of ["a", "a", "b", undefined, undefined]) {
      warner.once("SLUICE_INVALID_LIMIT", `limit of ${subject}`, subject)
    }
    warner.once("SLUICE_INVALID_COST", "cost", "a")
    expect(heard).toEqual([
      { code: "SLUICE_INVALID_LIMIT", message: "limit of a" },
      { code: "SLUICE_INVALID_LIMIT", message: "limit of b" },
      { code: "SLUICE_INVALID_LIMIT", message: "limit of undefined" },
      { code: "SLUICE_INVALID_COST", message: "cost" },
    ])
  })

  it("logs at the level of the warning, with the cause and a link to the documentation", () => {
    const { heard, logged, warner } = setUp()
    const cause = new Error("why")
    warner.say("error", "SLUICE_DEGRADED", "Gone.", cause)
    warner.once("SLUICE_INVALID_COST", "Cost.")
    expect(logged).toEqual([
      ["error", { code: "SLUICE_DEGRADED", err: cause }, "Gone. (@sluice/core/errors/sluice_degraded.md)"],
      ["warn", { code: "SLUICE_INVALID_COST" }, "Cost. (@sluice/core/errors/sluice_invalid_cost.md)"],
    ])
    expect(heard[0]).toEqual({ code: "SLUICE_DEGRADED", message: "Gone.", cause })
  })

  it.each([
    ["there is no logger", undefined],
    ["the logger fails", { warn: fail, error: fail }],
    ["the logger fails later", { warn: async () => fail(), error: async () => fail() }],
  ])("emits a process warning if %s", async (_when, logger) => {
    const emitted = new Promise<Error & { code?: string }>((resolve) => process.once("warning", resolve))
    createWarner(logger, () => undefined).say("warn", "SLUICE_INVALID_COST", "Cost.")
    expect(await emitted).toMatchObject({
      name: "SluiceWarning",
      code: "SLUICE_INVALID_COST",
      message: "Cost. (@sluice/core/errors/sluice_invalid_cost.md)",
    })
  })
})
