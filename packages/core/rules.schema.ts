import { writeFileSync } from "node:fs"
import { toJsonSchema } from "@valibot/to-json-schema"
import type { CalendarPeriod } from "./src/ground/calendar.ts"
import type { ObjectSchema, RecordSchema, Schema } from "./src/ground/shape.ts"
import {
  ruleDocument,
  type StoredObject,
  storedRate,
  storedRule,
} from "./src/rules/documents/document-schema.ts"
import { storedMatch } from "./src/rules/parsing/match-members.ts"
import { override, overrideShape } from "./src/rules/parsing/override-members.ts"
import { penaltyShape } from "./src/rules/parsing/penalty-members.ts"
import { MAX_BODY, storedRejection } from "./src/rules/parsing/rejection-members.ts"
import { RULE_MEMBERS } from "./src/rules/parsing/rule-members.ts"
import { serviceMetadata } from "./src/rules/parsing/service-metadata-members.ts"
import { storedQueue, storedThrottles } from "./src/rules/parsing/throttle-members.ts"

// Makes rules.schema.json, the JSON Schema of the stored shape that editors read: `pnpm schema`. The shape comes from
// the schema that the parser uses, and the descriptions of a rule's members from their table. Other descriptions, and
// the parts of the schema that stand for functions, are added here.

/** The members that are added to a part of the schema. */
type Added = Readonly<Record<string, unknown>> & { readonly description: string }

/** Describes every member, because one without a description is an error of the compiler. */
function describe<Entries extends Readonly<Record<string, Schema>>>(
  { entries }: ObjectSchema<Entries>,
  added: { [Name in keyof Entries]: Added },
): void {
  for (const name in entries) about.set(entries[name] as Schema, added[name])
}

const about = new Map<Schema, Readonly<Record<string, unknown>>>()

/** Describes every member, by its name in code. Older spellings refer to the current one. */
function describeStored({ shape, spellings }: StoredObject, added: Readonly<Record<string, Added>>): void {
  for (const [spelling, { name, preferred }] of spellings) {
    const description = `Another spelling of ${preferred}. It works, but write ${preferred} instead.`
    const older = { description, deprecated: true, doNotSuggest: true }
    about.set(shape.entries[spelling] as Schema, spelling === preferred ? (added[name] as Added) : older)
  }
}

/** As `parseDuration` reads them. */
const UNITS = "ms msec millisecond s sec second m min minute h hr hour d day w week".split(" ")
/** JSON Schema has no way to say that case does not matter. */
const anyCase = (word: string): string => word.replace(/./g, (char) => `[${char}${char.toUpperCase()}]`)
const DURATION = `^\\s*(\\d{1,15}(\\.\\d{1,6})?)?\\s*(${UNITS.map(anyCase).join("|")})[sS]?\\s*$`
/** A time, as a number or as text with a unit. */
const duration = (examples: readonly string[]): readonly object[] => [
  { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  { type: "string", pattern: DURATION, examples },
]
const FIELD =
  "^((header|cookie):[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,128}|(query|param):.{1,128}|body:[^.]{1,128}(\\.[^.]{1,128}){0,7}|[\\w.-]{1,64})$"

const MONTH_DAY =
  "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|[12]\\d))"
/** A day that is a number up to `last`, also as a string that `digits` matches, or a date. */
const anchorDay = (last: number, digits: string): object => ({
  anyOf: [
    { type: "integer", minimum: 1, maximum: last },
    { type: "string", pattern: `^(${digits}|\\d{4}-${MONTH_DAY}(T.*)?)$` },
  ],
})
/** The anchors of each period, as `anchorOf` reads them. */
const ANCHORS: Readonly<Record<CalendarPeriod, object | false>> = {
  day: false,
  week: anchorDay(7, "0?[1-7]"),
  month: anchorDay(31, "0?[1-9]|[12]\\d|3[01]"),
  year: { type: "string", pattern: `^(\\d{4}-)?${MONTH_DAY}(T.*)?$` },
}

about.set(storedRate.shape, {
  anyOf: [...storedRate.spellings].flatMap(([spelling, { name }]) =>
    name === "limit" ? [{ required: [spelling] }] : [],
  ),
})
describeStored(storedRate, {
  limit: { description: "Number of units admitted per unit of time." },
  unit: { description: "The unit of time. One of it is the rule's window." },
})

about.set(storedRule.shape, {
  description:
    "How many units are admitted in a window, or how many requests may be in progress. They are counted for each value of the field.",
  oneOf: [
    { required: ["rate"] },
    { required: ["limit", "window"] },
    { required: ["limit", "per"] },
    { required: ["concurrent"] },
  ],
  dependencies: {
    limit: { anyOf: [{ required: ["window"] }, { required: ["per"] }] },
    window: ["limit"],
    per: {
      required: ["limit"],
      properties: {
        algorithm: { const: "fixed-window" },
        ...Object.fromEntries(["align", "buckets", "burst", "refill"].map((name) => [name, false])),
      },
      allOf: Object.entries(ANCHORS).map(([per, anchor]) => ({
        if: { properties: { per: { const: per } } },
        // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
        then: { properties: { anchor } },
      })),
    },
    time_zone: ["per"],
    anchor: ["per"],
    hold: ["concurrent"],
  },
})
const described: Record<string, Added> = Object.fromEntries(
  Object.entries(RULE_MEMBERS).map(([name, { description, default: value }]) => [
    name,
    { description, ...(value !== undefined && { default: value }) },
  ]),
)
/** Adds to the schema of a member what its shape and its entry in the table do not contain. */
function add(name: keyof typeof RULE_MEMBERS, more: object): void {
  described[name] = { ...(described[name] as Added), ...more }
}
add("field", {
  anyOf: [
    { type: "string", pattern: FIELD, examples: ["ip", "user_id", "header:x-api-key"] },
    { type: "array", items: { type: "string", pattern: FIELD }, minItems: 1, uniqueItems: true },
  ],
})
add("window", { anyOf: duration(["1 minute", "15m", "1 day"]) })
add("timeZone", { type: "string", examples: ["UTC", "Europe/Berlin"] })
add("anchor", { type: ["integer", "string"], examples: [31, "2026-01-31", "04-01"] })
add("hold", { anyOf: duration(["30 seconds", "5 minutes"]) })
add("rejectionMessage", {
  examples: ["retry-with-exponential-backoff", "retry-with-fixed-time", "exhausted-daily-limit"],
})
add("rejection", { allOf: [reference("rejection")] })
add("penalty", { allOf: [reference("penalty")] })
add("notify", { uniqueItems: true, examples: [[80, 100]] })
add("match", { allOf: [reference("match")] })
describe(storedMatch, {
  methods: { description: "HTTP methods, in upper or lower case. GET covers HEAD." },
  path: {
    description:
      "A path pattern, such as /users/:id or /files/*. Case, trailing and repeated slashes, and percent encoding are ignored.",
    pattern: "^/",
    maxLength: 1024,
  },
  fields: { description: "Fields, each with the values that match, such as plan: [free, trial]." },
})

describe(overrideShape, {
  limit: { description: "Number of units admitted per window." },
  burst: {
    description:
      "Number of units that the bucket holds. Only for token-bucket and leaky-bucket. Default: the rule's burst, or else this limit.",
  },
})
about.set(override, {
  get allOf() {
    return [{ anyOf: [jsonOf(RULE_MEMBERS.limit.storedShape as Schema), reference("override")] }]
  },
})

describe(penaltyShape, {
  refusals: { description: "Number of refusals by this rule that block the client." },
  within: {
    description:
      "Time in which these refusals count, from the first one: milliseconds, or a string such as 5 minutes. Default: the rule's window.",
    anyOf: duration(["1 minute", "1h"]),
  },
  for: {
    description:
      "How long the client is blocked, from the last counted refusal: milliseconds, or a string such as 1 hour. A list has steps: each block moves the client one step up, and each within without a refusal one step down.",
    anyOf: [
      ...duration(["15 minutes", "1 day"]),
      { type: "array", items: { anyOf: duration(["1 minute", "1 hour"]) }, minItems: 1, maxItems: 16 },
    ],
  },
})

describe(storedRejection, {
  status: { description: "The status of the answer.", default: 429 },
  body: {
    description:
      "A string, or an object or an array to send as JSON. Default: a problem (RFC 9457) that has the names of the rules.",
    anyOf: [{ type: "string", maxLength: MAX_BODY }, { type: "object" }, { type: "array" }],
  },
  content_type: {
    description:
      "The media type of the body. Requires body. Default: text/plain for a string, otherwise application/json.",
    examples: ["text/html; charset=utf-8"],
  },
})

const throttling = { description: "What to do with a request above the limit." }
describe(storedThrottles.hard, { kind: throttling })
const queue = {
  description: "Holds the requests that are not admitted until they fit. Default: refuses them.",
}
describe(storedThrottles.soft, {
  kind: throttling,
  queue,
  percent: { description: "Percentage of the limit that is admitted above it, rounded down to whole units." },
})
describe(storedThrottles.elastic, {
  kind: throttling,
  queue,
  ceiling: { description: "Most units that are admitted. It must be above the limit. Default: no ceiling." },
})
const waiting = {
  max_waiting: {
    description:
      "Most requests that wait for one counter in a process. Default: 100. For a leaky-bucket, these wait in front of the bucket; the default 0 refuses requests that the bucket has no room for. 0 is only valid for a leaky-bucket.",
  },
  max_wait_ms: { description: "Longest wait of a request in milliseconds.", default: 10_000 },
}
describe(storedThrottles.queue, { kind: throttling, ...waiting })
describe(storedQueue, waiting)

add("throttle", {
  anyOf: [{ type: "string", const: "hard" }, ...Object.values(storedThrottles).map(jsonOf)],
})
describeStored(storedRule, {
  ...described,
  rate: {
    description:
      "Limit and window in one member: requests_per_unit units per second, minute, hour, day or week.",
    allOf: [reference("rate")],
  },
})

describe(serviceMetadata, {
  owner: { description: "The team or person that the service belongs to." },
  description: { description: "What the service does, or what its limits are for." },
  contact: {
    description: "How to reach the owner.",
    examples: ["checkout@example.com", "#team-checkout"],
  },
  link: {
    description:
      "An http or https URL of a page about the limits. Refused clients get it in the header Link, with rel=help.",
    examples: ["https://example.com/limits"],
  },
})

const service =
  "The service that the rules belong to. In a file, a document without it applies to every service without its own document."
about.set(ruleDocument.shape, {
  description: "The rules of one service.",
  anyOf: [{ required: ["rules"] }, { required: ["rule"] }],
})
describeStored(ruleDocument, {
  service: { description: service },
  version: {
    description:
      "The version in the registry that these rules are based on. `sluice rules pull` writes it. `push` fails if the registry has another version.",
  },
  metadata: {
    description: "The owner of the service, and where its clients find help.",
    allOf: [reference("metadata")],
  },
  rules: {
    description: "The rules, or a single rule. A request must satisfy all of them.",
    anyOf: [{ type: "array", items: reference("rule") }, reference("rule")],
  },
})
const singleRule = ruleDocument.shape.entries.rule as Schema
about.set(singleRule, { ...about.get(singleRule), allOf: [reference("rule")] })

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
  // Which schema applies depends on the value.
  if (schema.type === "lazy") return { ...added }
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
  // Ignore checks by functions, because JSON Schema cannot express them.
  const { $schema, ...json } = toJsonSchema(schema, { errorMode: "ignore" })
  return { ...added, ...json, ...added }
}

/** The JSON Schema of a file of rules: one document, or a list of them. */
export function rulesSchema(): object {
  const one = reference("document")
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Sluice rules",
    // Do not use anyOf, because an editor could then only report that neither alternative fits.
    if: { type: "array" },
    // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
    then: { type: "array", items: one, minItems: 1 },
    else: one,
    definitions: {
      document: jsonOf(ruleDocument.shape),
      metadata: jsonOf(serviceMetadata),
      rule: jsonOf(storedRule.shape),
      rate: jsonOf(storedRate.shape),
      penalty: jsonOf(penaltyShape),
      rejection: jsonOf(storedRejection),
      override: jsonOf(overrideShape),
      match: jsonOf(storedMatch),
    },
  }
}

/** Returns the text of the file: a line for each member of a definition. The file is part of @sluice/rules. */
export function rulesSchemaText(): string {
  return `${lines(rulesSchema(), 4)}\n`
}

function lines(value: unknown, depth: number): string {
  if (depth === 0 || typeof value !== "object" || value === null || Array.isArray(value))
    return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${lines(member, depth - 1)}`,
  )
  return `{\n${members.join(",\n")}\n}`
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(new URL("../rules/rules.schema.json", import.meta.url), rulesSchemaText())
}
