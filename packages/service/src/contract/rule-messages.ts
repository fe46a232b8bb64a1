import { fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf"
import { formatRuleDocument, parseRuleDocument, type RegisteredRules, type Rule } from "@sluice/core"
import { type Rule as RuleMessage, RuleSchema } from "../gen/sluice/v1/rate_limiter_pb.ts"

// A message has the words of the stored shape, so each becomes the other by way of JSON, and the core's one parser says
// what is wrong. What differs: a list of fields is a field of its own, as are the values that a field must match, numbers of
// 64 bits are texts, and "error_message" is the contract's own word.

/**
 * The rules that messages say. `under` is the field that they came in, by which problems are located. What proto3 cannot tell
 * from absent, an empty text or list, 0 and false, is absent. Throws InvalidRuleError.
 */
export function rulesOf(messages: readonly RuleMessage[], under: "rule" | "rules"): Rule[] {
  const stored = messages.map(storedRule)
  return parseRuleDocument(under === "rule" ? { rule: stored[0] } : { rules: stored })
}

/** Rules that are registered, as messages. */
export function ruleMessages({ service, rules }: RegisteredRules): RuleMessage[] {
  return formatRuleDocument(service, rules).rules.map((rule) => ruleMessage(rule as JsonObject))
}

/** Members that are numbers of 64 bits, wherever they stand. */
const COUNTS: ReadonlySet<string> = new Set([
  ...["limit", "buckets", "burst", "cost"],
  ...["refusals", "ceiling", "max_waiting", "max_wait_ms"],
])

function storedRule(message: RuleMessage): JsonObject {
  const json = toJson(RuleSchema, message, { useProtoFieldName: true }) as JsonObject
  const { error_message, fields, match, ...same } = withCounts(json) as JsonObject
  // Both at once are a mistake, and the parser does not know "fields".
  const field = fields === undefined ? {} : same.field === undefined ? { field: fields } : { fields }
  return {
    ...same,
    ...field,
    ...(error_message !== undefined && { request_rejection_message: error_message }),
    ...(match !== undefined && { match: storedMatch(match as JsonObject) }),
  }
}

function withCounts(json: JsonValue): JsonValue {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return json
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) =>
      // The name of a field that is matched may be one of these too: its value is an object.
      COUNTS.has(name) && typeof value === "string" ? [name, Number(value)] : [name, withCounts(value)],
    ),
  )
}

function storedMatch({ fields, ...same }: JsonObject): JsonObject {
  return fields === undefined
    ? same
    : { ...same, fields: mapped(fields, (value) => (value as JsonObject).values ?? []) }
}

function ruleMessage(stored: JsonObject): RuleMessage {
  const { field, window, request_rejection_message, match, throttle, penalty, ...same } = stored
  return fromJson(RuleSchema, {
    ...same,
    ...(field !== undefined && (Array.isArray(field) ? { fields: field } : { field })),
    ...(window !== undefined && { window: durationText(window) }),
    ...(request_rejection_message !== undefined && { error_message: request_rejection_message }),
    ...(match !== undefined && { match: matchMessage(match as JsonObject) }),
    ...(throttle !== undefined && { throttle: throttle === "hard" ? { kind: "hard" } : throttle }),
    ...(penalty !== undefined && { penalty: penaltyMessage(penalty as JsonObject) }),
  })
}

function matchMessage({ fields, ...same }: JsonObject): JsonObject {
  return fields === undefined ? same : { ...same, fields: mapped(fields, (values) => ({ values })) }
}

function penaltyMessage({ refusals = 0, within, for: blocked = 0 }: JsonObject): JsonObject {
  return {
    refusals,
    ...(within !== undefined && { within: durationText(within) }),
    for: durationText(blocked),
  }
}

function durationText(duration: JsonValue): string {
  return typeof duration === "number" ? `${duration} ms` : String(duration)
}

function mapped(members: JsonValue, change: (value: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(
    Object.entries(members as JsonObject).map(([name, value]) => [name, change(value)]),
  )
}
