import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { atOnce } from "../../ground/slices.ts"
import { isBuiltInField } from "../../request/field.ts"
import type { RequestFacts } from "../../request/request.ts"
import { pathReadings } from "../../rules/matching/path.ts"
import { requireRules } from "../../rules/parsing/parse-rule.ts"
import type { RateRule, Rule, RuleMatch } from "../../rules/rule.ts"
import { CallbackResults } from "../callbacks/callback-results.ts"
import { fieldCallback } from "./field-callback.ts"
import type { RuleContext } from "./rule-context.ts"
import { type IndexedRequest, RuleIndex } from "./rule-index.ts"
import { compileRuleSet, type RuleSet } from "./rule-set.ts"
import { ALL_STEPS, stepSet } from "./steps.ts"

interface Request {
  readonly fields: Readonly<Record<string, string>>
}

function contextWith(onRead: (field: string) => void = () => undefined): RuleContext {
  const address = ({ remoteAddress }: RequestFacts) => remoteAddress
  const callbacks = {
    callbackTimeoutMs: 1_000,
    clock: manualClock(),
    warner: { once() {}, say() {}, has: () => false } as unknown as RuleContext["warner"],
  }
  return {
    ...callbacks,
    service: "s",
    onStoreFailure: "local",
    hashKeys: undefined,
    hashSecret: "",
    clientAddress: address as RuleContext["clientAddress"],
    clientGroup: address as RuleContext["clientGroup"],
    groupOf: (own) => own,
    fieldOf(name) {
      if (isBuiltInField(name)) return undefined
      const read = (request: unknown) => {
        onRead(name)
        return (request as Request).fields[name]
      }
      return fieldCallback(name, read, callbacks)
    },
    amountOf: () => 1,
    extractorNames: [],
    watches: new Map(),
    firstStep: "arrival",
    blocks: { isOn: false },
  }
}

function compile(rules: readonly Rule[], onRead?: (field: string) => void): RuleSet {
  return atOnce(compileRuleSet(requireRules(rules, "rules"), contextWith(onRead)))
}

function indexOf(rules: readonly Rule[]): RuleIndex | undefined {
  const parsed = requireRules(rules, "rules")
  return atOnce(
    RuleIndex.of(
      parsed,
      parsed.map(() => ALL_STEPS),
    ),
  )
}

/** Returns the positions of the rules that the index finds for a GET request, whose route and fields are unknown. */
function foundBy(rules: readonly Rule[], request: Partial<IndexedRequest>): readonly number[] {
  return (indexOf(rules) as RuleIndex).candidates({
    hasMethod: (methods) => methods.has("GET"),
    paths: ["/"],
    route: undefined,
    isPreflight: false,
    steps: ALL_STEPS,
    fieldText: () => undefined,
    ...request,
  })
}

function namesFor(set: RuleSet, facts: RequestFacts, request: Request, steps = ALL_STEPS): string[] {
  return set.ruleChecks(facts, new CallbackResults(request), 1, steps).map(({ policy }) => policy.name)
}

const limited = (rules: readonly Partial<RateRule>[]): Rule[] =>
  rules.map((rule, index) => ({ name: `r${index}`, field: "service", limit: 5, window: "1m", ...rule }))

const NAMES = ["a", "b", "A", "ä", "σ", "ς", "K", "%61", "a%2fb", "x.y", "%zz", "long-name"]
const segment = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "A", "ä", "ς", "σ", "%61", "x.y", "long-name", "k") },
  { weight: 2, arbitrary: fc.constantFrom(":id", ":other", "v:id", ":id.json", "a:id") },
)
const ending = fc.constantFrom(
  "",
  "/",
  "/*",
  "/*rest/b",
  "{/:v}",
  "{/b}",
  "{b}",
  "{/a}{/b}",
  "{/a}b",
  "/{a}",
  "-*rest",
)
const pattern = fc
  .tuple(fc.array(segment, { maxLength: 3 }), ending)
  .map(([segments, end]) => `/${segments.join("/")}${end}`)
  .filter((text) => {
    try {
      requireRules(limited([{ match: { path: text } }]), "rules")
      return true
    } catch {
      return false
    }
  })
const methods = fc.subarray(["GET", "post", "OPTIONS", "HEAD"], { minLength: 1 })
const values = fc.uniqueArray(
  fc.constantFrom("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"),
  {
    minLength: 1,
    maxLength: 3,
  },
)
const fields = fc.record(
  { plan: values, tenant: values, "header:kind": values },
  { requiredKeys: [], noNullPrototype: true },
)
const addresses = fc.constant({ ip: ["10.0.0.0/8"] })
const match = fc.record(
  { methods, path: pattern, fields: fc.oneof({ weight: 5, arbitrary: fields }, addresses) },
  { requiredKeys: [], noNullPrototype: true },
)
/** Includes many rules of one kind, so that fields are indexed. */
const rule: fc.Arbitrary<{ readonly match?: Rule["match"] }> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ match }, { requiredKeys: [] }) },
  { weight: 3, arbitrary: fields.map((some) => ({ match: { path: "/a/:id", fields: some } })) },
  { weight: 1, arbitrary: fields.map((some) => ({ match: { fields: some } })) },
)
const target = fc
  .tuple(
    fc.constantFrom("", "/", "//", "http://host/", "/./", "/../", "\\", "//user@host/", " /", "/a/"),
    fc.array(
      fc.tuple(
        fc.constantFrom(...NAMES, "..", ".", "", "a;b", "b\\a"),
        fc.constantFrom("/", "//", "/./", "\\", "%2f"),
      ),
      { maxLength: 4 },
    ),
    fc.constantFrom("", "?q=/a", "#x", "/", "\u00a0"),
  )
  .map(([begin, parts, end]) => `${begin}${parts.flat().join("")}${end}`)
const value = fc.constantFrom("1", "2", "3", "8", "12", "none")
const PREFLIGHT = { "access-control-request-method": "GET", origin: "http://a" }
const facts = fc.record(
  {
    method: fc.constantFrom("GET", "get", "POST", "HEAD", "OPTIONS", "BREW"),
    url: target,
    routedUrl: target,
    route: fc.oneof(pattern, fc.constantFrom("/a/:other", "/A/:id(\\d+)/")),
    remoteAddress: fc.constantFrom("10.1.2.3", "192.0.2.1"),
    headers: fc.oneof(
      fc.constant(PREFLIGHT),
      value.map((kind) => ({ kind })),
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
)
const request = fc.record({
  fields: fc.record({ plan: value, tenant: value }, { requiredKeys: [], noNullPrototype: true }),
})

/** Returns a path that matches a pattern, with or without its optional parts, and in another spelling. */
function spelled(path: string, spelling: number): string {
  const options = spelling % 2 === 0 ? "" : "$1"
  const filled = path
    .replace(/\{([^}]*)\}/g, options)
    .replace(/:\w+/g, "7")
    .replace(/\*\w*/g, "7/8")
  return spelling < 2 ? filled : filled.toUpperCase().replaceAll("Σ", "ς")
}

describe("a rule set that is large enough for an index", () => {
  it("returns the same rules in the same order as checking each rule", () => {
    const some = fc.array(rule, { minLength: 20, maxLength: 60 })
    const any = fc.tuple(facts, request)
    const meant = fc.tuple(fc.nat(), fc.nat(3), request)
    fc.assert(
      fc.property(
        some,
        fc.array(any, { maxLength: 6 }),
        fc.array(meant, { maxLength: 9 }),
        (rules, others, own) => {
          const named = limited(rules)
          const indexed = compile(named)
          const alone = named.map((one) => compile([one]))
          const requests: (readonly [RequestFacts, Request])[] = own.map(([index, spelling, from]) => {
            const { methods: [method = "GET"] = [], path = "/a/7" } = (rules[index % rules.length]?.match ??
              {}) as RuleMatch
            return [{ method, url: spelled(path, spelling) }, from]
          })
          for (const [known, from] of [...others, ...requests]) {
            const expected = alone.flatMap((set) => namesFor(set, known, from))
            expect(namesFor(indexed, known, from)).toEqual(expected)
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it("reads fields only of requests that the path and the methods of a rule cover", () => {
    const read: string[] = []
    const rules = Array.from({ length: 40 }, (_, index) => ({
      match: { methods: ["POST"], path: "/login", fields: { tenant: [`t-${index}`] } },
    }))
    const set = compile(limited(rules), (field) => read.push(field))
    const from = { fields: { tenant: "t-7" } }
    for (const known of [
      { method: "GET", url: "/login" },
      { method: "POST", url: "/login/x" },
      { url: "/login" },
      { method: "OPTIONS", url: "/login", headers: PREFLIGHT },
    ]) {
      expect(namesFor(set, known, from)).toEqual([])
    }
    const ofAnyMethod = rules.map(({ match: { fields } }) => ({ match: { fields } }))
    const anySet = compile(limited(ofAnyMethod), (field) => read.push(field))
    expect(namesFor(anySet, { method: "OPTIONS", url: "/login", headers: PREFLIGHT }, from)).toEqual([])
    expect(read).toEqual([])
    expect(namesFor(set, { method: "POST", url: "/LOGIN/" }, from)).toEqual(["r7"])
    // The field is read once for the index, and once for the rule that the index has found.
    expect(read).toEqual(["tenant", "tenant"])
  })

  it("reads a field of the app only at the step at which it exists", () => {
    const read: string[] = []
    const rules = Array.from({ length: 40 }, (_, index) => ({
      match: { fields: { tenant: [`t-${index}`] } },
    }))
    const set = compile(limited([...rules, { name: "all" }]), (field) => read.push(field))
    const from = { fields: { tenant: "t-7" } }
    expect(namesFor(set, { url: "/" }, from, stepSet("arrival"))).toEqual(["all"])
    expect(read).toEqual([])
    expect(namesFor(set, { url: "/" }, from, stepSet("app"))).toEqual(["r7"])
  })

  it.each<[what: string, matchOf: (index: number) => Rule["match"], url: string]>([
    ["their paths", (index) => ({ path: `/api/resource-${index}` }), "/API/resource-7/"],
    ["paths before a wildcard", (index) => ({ path: `/api/resource-${index}/*` }), "/api/resource-7/a"],
    ["paths behind a parameter", (index) => ({ path: `/users/:id/part-${index}` }), "/users/1/part-7"],
    [
      "paths before an option",
      (index) => ({ path: `/api/resource-${index}{/:version}` }),
      "/api/resource-7/2",
    ],
    ["the values of a field", (index) => ({ fields: { tenant: [`t-${index}`] } }), "/"],
    [
      "the values of a second field",
      (index) => ({ path: "/api/*", fields: { plan: ["free"], tenant: [`t-${index}`] } }),
      "/api/b",
    ],
  ])("finds one of 1,000 rules that differ by %s", (_what, matchOf, url) => {
    const rules = limited(Array.from({ length: 1_000 }, (_, index) => ({ match: matchOf(index) })))
    const fieldText: IndexedRequest["fieldText"] = (_position, field) => (field === "tenant" ? "t-7" : "free")
    expect(foundBy(rules, { paths: pathReadings(url), fieldText })).toEqual([7])
  })

  it.each(["tenant", "constructor"])(
    "finds the rules for one value of the field %s, and the rules of the same path without the field",
    (field) => {
      const rules = limited([
        ...Array.from({ length: 16 }, (_, index) => ({
          match: { path: "/a", fields: { [field]: [`t-${index}`] } },
        })),
        ...[{ match: { path: "/a" } }, { match: { path: "/a", fields: { plan: ["free"] } } }],
        ...Array.from({ length: 8 }, () => ({})),
      ])
      const withoutField = [16, 17, 18, 19, 20, 21, 22, 23, 24, 25]
      expect(foundBy(rules, { paths: ["/a"], fieldText: () => "t-7" })).toEqual([7, ...withoutField])
      expect(foundBy(rules, { paths: ["/a"] })).toEqual(withoutField)
    },
  )

  it.each<[count: number, tenantsOf: (index: number) => string[], found: number]>([
    [7, (index) => [`t-${index}`, `u-${index}`], 7],
    [8, (index) => [`t-${index}`], 1],
    [16, (index) => [`t-${index % 7}`], 16],
    [16, () => [], 16],
  ])(
    "with %d rules of one path is indexed by a field only if they have many values",
    (count, tenantsOf, found) => {
      const rules = limited([
        ...Array.from({ length: count }, (_, index) => {
          const tenant = tenantsOf(index)
          return { match: { path: "/a", ...(tenant.length > 0 && { fields: { tenant } }) } }
        }),
        ...Array.from({ length: 16 }, () => ({ match: { path: "/b" } })),
      ])
      expect(foundBy(rules, { paths: ["/a"], fieldText: () => "t-3" })).toHaveLength(found)
    },
  )

  it.each<[field: string, valueFor: (index: number) => string, facts: RequestFacts]>([
    ["ip", (index) => `10.${index}.0.0/16`, { remoteAddress: "10.7.1.1" }],
    ["method", (index) => (index === 7 ? "get" : `M-${index}`), { method: "GET" }],
    ["route", (index) => `/part-${index}/:id`, { route: "/part-7/:id" }],
  ])(
    "finds one of many rules that differ in the values of %s, which are compared in another way",
    (field, valueFor, facts) => {
      const rules = Array.from({ length: 20 }, (_, index) => ({
        match: { fields: { [field]: [valueFor(index)] } },
      }))
      expect(namesFor(compile(limited(rules)), facts, { fields: {} })).toEqual(["r7"])
    },
  )

  it.each([
    ["/users/:id", "/users"],
    ["/:id", "/"],
  ])("does not find rules for %s for the shorter path %s", (path, shorter) => {
    const rules = limited(Array.from({ length: 16 }, () => ({ match: { path } })))
    expect(foundBy(rules, { paths: [shorter] })).toEqual([])
  })

  it("returns each rule once, in the order of the rules, if a path has several readings", () => {
    const paths = ["/b/*", "/a/*", ...Array.from({ length: 14 }, (_, index) => `/other-${index}`)]
    const rules = limited(paths.map((path) => ({ match: { path } })))
    expect(foundBy(rules, { paths: ["/a/1", "/b/1"] })).toEqual([0, 1])
    expect(foundBy(rules, { paths: ["/a/1", "/a/2"] })).toEqual([1])
  })

  it("is not indexed when few of its rules have a match", () => {
    const rules = limited(
      Array.from({ length: 40 }, (_, index) => (index < 15 ? { match: { path: `/${index}` } } : {})),
    )
    expect(indexOf(rules)).toBeUndefined()
  })

  it("compiles the first rule with each field, and others when a request needs them", () => {
    const rules = Array.from({ length: 40 }, (_, index) => ({
      ...{ field: index < 30 ? "header:x" : "header:y" },
      match: { path: `/path-${index}` },
    }))
    const context = contextWith()
    const set = atOnce(compileRuleSet(requireRules(limited(rules), "rules"), context))
    // Each compiled rule has a watch for its field.
    expect(context.watches.size).toBe(2)
    namesFor(set, { url: "/path-7" }, { fields: {} })
    expect(context.watches.size).toBe(3)
  })
})
