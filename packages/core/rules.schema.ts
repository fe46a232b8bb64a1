import { writeFileSync } from "node:fs"
import { toJsonSchema } from "@valibot/to-json-schema"
import { ALGORITHM_NAMES, ALGORITHMS } from "./src/algorithms/kinds.ts"
import type { ObjectSchema, RecordSchema, Schema } from "./src/ground/shape.ts"
import { ruleDocument, storedRate, storedRule } from "./src/rules/documents/document-schema.ts"
import { member } from "./src/rules/parsing/rule-members.ts"
import { storedThrottles } from "./src/rules/parsing/throttle-members.ts"

// Makes rules.schema.json, the JSON Schema of the stored shape that editors read: `pnpm schema`. The shape comes from the
// schema that the parser uses; what editors show, and what that schema says by functions, is added here.

/** What is added to a part of the schema. */
type Added = Readonly<Record<string, unknown>> & { readonly description: string }

/** Says something of every member: one without a description is an error of the compiler. */
function describe<Entries extends Readonly<Record<string, Schema>>>(
  { entries }: ObjectSchema<Entries>,
  added: { [Name in keyof Entries]: Added },
): void {
  for (const name in entries) about.set(entries[name] as Schema, added[name])
}

const about = new Map<Schema, Readonly<Record<string, unknown>>>()
const older = (now: string): Added => ({
  description: `An older spelling of ${now}: it is read, write ${now}.`,
  deprecated: true,
  doNotSuggest: true,
})

/** As `parseDuration` reads them. */
const UNITS = "ms msec millisecond s sec second m min minute h hr hour d day w week".split(" ")
/** JSON Schema has no way to say that case does not matter. */
const anyCase = (word: string): string => word.replace(/./g, (char) => `[${char}${char.toUpperCase()}]`)
const DURATION = `^\\s*(\\d{1,15}(\\.\\d{1,6})?)?\\s*(${UNITS.map(anyCase).join("|")})[sS]?\\s*$`
/** A time, as a number or a text. */
const duration = (examples: readonly string[]): readonly object[] => [
  { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  { type: "string", pattern: DURATION, examples },
]
const FIELD =
  "^((header|cookie):[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,128}|(query|param):.{1,128}|body:[^.]{1,128}(\\.[^.]{1,128}){0,7}|[\\w.-]{1,64})$"

about.set(storedRate, {
  anyOf: [{ required: ["requests_per_unit"] }, { required: ["requestsPerUnit"] }],
})
describe(storedRate, {
  requests_per_unit: { description: "Units that are admitted in one unit of time." },
  unit: { description: "The unit of time, which is the rule's window." },
  requestsPerUnit: older("requests_per_unit"),
})

about.set(storedRule, {
  description: "How many units, in which window, counted for whom.",
  oneOf: [{ required: ["rate"] }, { required: ["limit", "window"] }],
  dependencies: { limit: ["window"], window: ["limit"] },
})
describe(storedRule, {
  name: {
    description:
      "In headers, problems and events; no two rules of a service have the same. Without one it is made from field and window: ip-1m.",
  },
  field: {
    description:
      "Whose requests are counted together: ip, method, route, header:NAME, query:NAME, body:PATH, param:NAME, cookie:NAME, or a name that the app has an extractor for, such as user_id. A list is a combination. Without it, or with service, all requests are counted together.",
    anyOf: [
      { type: "string", pattern: FIELD, examples: ["ip", "user_id", "header:x-api-key"] },
      { type: "array", items: { type: "string", pattern: FIELD }, minItems: 1, uniqueItems: true },
    ],
  },
  rate: {
    description: "Limit and window in one: requests_per_unit units in one second, minute, hour, day or week.",
    allOf: [reference("rate")],
  },
  limit: { description: "Units that are admitted in a window. Needs window." },
  window: {
    description: "A number of milliseconds, or a text such as 90 seconds, 15m or 2 weeks. Needs limit.",
    anyOf: duration(["1 minute", "15m", "1 day"]),
  },
  request_rejection_message: {
    description:
      "What a refused client is told: any text, or one of the three that tell a program how to go on: retry-with-exponential-backoff, retry-with-fixed-time, exhausted-daily-limit.",
    examples: ["retry-with-exponential-backoff", "retry-with-fixed-time", "exhausted-daily-limit"],
  },
  on_missing: {
    description:
      "What a request without the field is: counted by address (ip, the default), with all such requests (shared), not at all (skip), or refused with 400 (deny).",
    default: "ip",
  },
  on_store_failure: {
    description:
      "When the shared store is gone: count in the process (local), admit (allow), or refuse with 503 (deny). Default: as the limiter is set.",
  },
  algorithm: {
    description: `How it is counted: ${new Intl.ListFormat("en", { type: "disjunction" }).format(ALGORITHM_NAMES.map((name) => `${ALGORITHMS[name].summary} (${name})`))}.`,
    default: "sliding-window",
  },
  align: {
    description:
      "Where windows begin: at whole multiples since 1970 (epoch), or at the first request (first-hit). For fixed-window only.",
    default: "epoch",
  },
  buckets: {
    description:
      "Parts that the window is counted in: more are closer to an exact count. For sliding-window (two windows by default) and sliding-window-strict (60 by default).",
  },
  burst: {
    description: "Units that the bucket holds. For token-bucket and leaky-bucket. Default: the limit.",
  },
  refill: {
    description:
      "Tokens come evenly (continuous) or all at once where a window begins (periodic). For token-bucket only.",
    default: "continuous",
  },
  throttle: {
    description:
      "What becomes of a request that does not fit: refused (hard, the default), admitted up to so many percent more (soft), admitted while there is capacity to spare (elastic), or held until it fits (queue, the default of leaky-bucket).",
    // Further down its kinds are described.
    get anyOf() {
      return [{ type: "string", const: "hard" }, ...Object.values(storedThrottles).map(jsonOf)]
    },
  },
  count_rejected: {
    description: "Whether requests that the rule refuses count too, so that who keeps knocking stays out.",
    default: false,
  },
  penalty: {
    description: "Blocks a client that was refused too often. Needs a field.",
    allOf: [reference("penalty")],
  },
  cost: {
    description: "Units that a request takes under this rule, times the request's own cost.",
    default: 1,
  },
  match: {
    description: "For which requests the rule is: all that is given must agree. Default: all.",
    allOf: [reference("match")],
  },
  allow: { description: "Values of the rule's field, for ip addresses and CIDRs, that are not counted." },
  deny: { description: "Values of the rule's field, for ip addresses and CIDRs, that are always refused." },
  shadow: { description: "Counts and reports, and refuses nobody: a rule on trial.", default: false },
  errorMessage: older("request_rejection_message"),
})

describe(member.match, {
  methods: { description: "Methods, in any case. GET covers HEAD." },
  path: {
    description:
      "A path pattern: /users/:id, /files/*. Compared without regard to case, trailing and repeated slashes and percent encoding.",
    pattern: "^/",
    maxLength: 1024,
  },
  fields: { description: "Fields, each with the values that it may have: plan: [free, trial]." },
})

describe(member.penalty, {
  refusals: { description: "So many refusals by this rule block the client." },
  within: {
    description:
      "Milliseconds or a text such as 5 minutes, from the first of them. Default: the rule's window.",
    anyOf: duration(["1 minute", "1h"]),
  },
  for: {
    description: "How long: milliseconds or a text such as 1 hour, from the refusal that reached the number.",
    anyOf: duration(["15 minutes", "1 day"]),
  },
})

const throttling = { description: "What becomes of a request that does not fit." }
describe(storedThrottles.hard, { kind: throttling })
describe(storedThrottles.soft, {
  kind: throttling,
  percent: { description: "Percent of the limit that are admitted above it, rounded down to whole units." },
})
describe(storedThrottles.elastic, {
  kind: throttling,
  ceiling: { description: "The most units that are admitted, above the limit. Default: no ceiling." },
})
describe(storedThrottles.queue, {
  kind: throttling,
  max_waiting: {
    description:
      "Requests that stand in line for one counter in a process, at most. Default: 100. For a leaky-bucket it is a line in front of the bucket: default 0, so that what the bucket has no room for is refused. 0 is only for a leaky-bucket.",
  },
  max_wait_ms: { description: "Milliseconds that a request waits at most.", default: 10_000 },
})

const service =
  "Whose rules these are. Without it, in a file, they are every service's that has none of its own."
about.set(ruleDocument, {
  description: "The rules of one service.",
  anyOf: [{ required: ["rules"] }, { required: ["rule"] }],
})
describe(ruleDocument, {
  service_id: { description: service },
  version: {
    description:
      "The version in the registry that these rules are based on: `sluice rules pull` writes it, and `push` is refused when another one is there.",
  },
  rules: {
    description: "The rules, all of which are decided together; or a single one.",
    anyOf: [{ type: "array", items: reference("rule") }, reference("rule")],
  },
  Service_id: older("service_id"),
  serviceId: older("service_id"),
  rule: { ...older("rules"), allOf: [reference("rule")] },
})

type Json = Readonly<Record<string, unknown>>

function reference(id: string): Json {
  return { $ref: `#/definitions/${id}` }
}

/** The JSON Schema of a schema, with what is added to it. */
function jsonOf(schema: Schema): Json {
  const { wrapped, entries, key, value } = schema as Partial<
    ObjectSchema & RecordSchema & { wrapped: Schema }
  >
  const added = about.get(schema)
  if (added?.allOf !== undefined) return added
  if (wrapped !== undefined) return { ...added, ...jsonOf(wrapped), ...added }
  if (entries !== undefined) {
    const members = Object.entries(entries)
    const required = members.filter(([, member]) => member.type !== "optional").map(([name]) => name)
    return {
      type: "object",
      properties: Object.fromEntries(members.map(([name, member]) => [name, jsonOf(member)])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
      ...added,
    }
  }
  if (key !== undefined && value !== undefined) {
    return { type: "object", propertyNames: { type: "string" }, additionalProperties: jsonOf(value) }
  }
  // What the parser checks by a function, JSON Schema has no word for.
  const { $schema, ...json } = toJsonSchema(schema, { errorMode: "ignore" })
  return { ...added, ...json, ...added }
}

/** The JSON Schema of a file of rules: one document, or a list of them. */
export function rulesSchema(): object {
  const one = reference("document")
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Sluice rules",
    // Not anyOf, of which an editor could only say that neither fits.
    if: { type: "array" },
    // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
    then: { type: "array", items: one, minItems: 1 },
    else: one,
    definitions: {
      document: jsonOf(ruleDocument),
      rule: jsonOf(storedRule),
      rate: jsonOf(storedRate),
      penalty: jsonOf(member.penalty),
      match: jsonOf(member.match),
    },
  }
}

/** What the file has. */
export function rulesSchemaText(): string {
  return `${JSON.stringify(rulesSchema(), null, 2)}\n`
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(new URL("rules.schema.json", import.meta.url), rulesSchemaText())
}
