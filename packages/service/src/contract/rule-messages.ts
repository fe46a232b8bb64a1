import { isDeepStrictEqual } from "node:util"
import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf"
import { InvalidRuleError, type Problem } from "@sluice/core"
import {
  formatRuleDocument,
  type RegisteredRules,
  readRuleDocumentInSlices,
  type StorableRule,
} from "@sluice/rules"
import { mapInTurns } from "../bounds/turns.ts"
import { type Rule as RuleMessage, RuleSchema } from "../gen/sluice/v1/rate_limiter_pb.ts"

// Rule messages use the names of the stored shape. Messages are converted to that shape through JSON, so that the
// core's parser reports all problems. In messages, separate fields contain a list of fields, a list of block
// durations and the values to match. An override is always an object, and the body of a rejection is always a string.
// 64-bit numbers are strings. Only the contract uses the name `error_message`.

/**
 * Converts messages to rules. `under` is the field of the request that contains the messages, and appears in the
 * paths of problems. Proto3 cannot distinguish an empty string or list, 0 and false from an absent value, so these
 * count as absent. Rejects with an InvalidRuleError that contains every problem, with the field names of messages.
 */
export async function rulesOf(
  messages: readonly RuleMessage[],
  under: "rule" | "rules",
): Promise<StorableRule[]> {
  const placeOf = (index: number): string => (under === "rule" ? under : `rules[${index}]`)
  const problems: Problem[] = messages.flatMap(({ field, fields, penalty }, index) => [
    ...twiceProblems(`${placeOf(index)}.fields`, "field", field, fields),
    ...twiceProblems(`${placeOf(index)}.penalty.for_steps`, "for", penalty?.for, penalty?.forSteps),
  ])
  const stored = await mapInTurns(messages, storedRule)
  const read = await readRuleDocumentInSlices(under === "rule" ? { rule: stored[0] } : { rules: stored })
  problems.push(
    ...read.problems.map((problem) => ({ ...problem, path: messagePath(problem.path, messages) })),
  )
  if (problems.length > 0) throw new InvalidRuleError(problems)
  return [...read.rules]
}

/** Returns a problem if both a list and the field for a single value are given. */
function twiceProblems(path: string, single: string, value = "", list: readonly string[] = []): Problem[] {
  if (value === "" || list.length === 0) return []
  return [{ path, message: `is given together with ${single}; give only one of them` }]
}

/** Converts the path of a stored member to the field names of its message. */
function messagePath(path: string, messages: readonly RuleMessage[]): string {
  const [, place = "", index = "0", member = ""] = /^(rule|rules\[(\d+)\])\.(.*)$/s.exec(path) ?? []
  if (member === "request_rejection_message") return `${place}.error_message`
  const message = messages[Number(index)]
  if (/^field(?:\[|$)/.test(member) && isList(message?.fields))
    return `${place}.fields${member.slice("field".length)}`
  if (/^penalty\.for(?:\[|$)/.test(member) && isList(message?.penalty?.forSteps))
    return `${place}.penalty.for_steps${member.slice("penalty.for".length)}`
  // In messages, the values to match are in a nested message. The pattern does not match a field name that ends like
  // an index, because such a name is quoted.
  return member.startsWith("match.fields") ? path.replace(/\[\d+\]$/, ".values$&") : path
}

function isList(list: readonly string[] = []): boolean {
  return list.length > 0
}

/** Returns registered rules as messages. */
export function ruleMessages({
  service,
  rules,
}: Pick<RegisteredRules, "service" | "rules">): Promise<RuleMessage[]> {
  return mapInTurns(rules, (rule) => messageOf(service, rule))
}

function messageOf(service: string, rule: StorableRule): RuleMessage {
  const [stored] = formatRuleDocument(service, [rule]).rules
  return ruleMessage(stored as JsonObject)
}

/** Whether two lists of rules are equal as messages, in which an absent member equals its default. */
export async function sayTheSame(
  service: string,
  some: readonly StorableRule[],
  others: readonly StorableRule[],
): Promise<boolean> {
  if (some.length !== others.length) return false
  const jsonOf = (rule: StorableRule): JsonValue => toJson(RuleSchema, messageOf(service, rule))
  let isSame = true
  await mapInTurns(some, (rule, index) => {
    // Compare deeply, because a database table does not preserve the order of the fields to match.
    isSame &&= isDeepStrictEqual(jsonOf(rule), jsonOf(others[index] as StorableRule))
  })
  return isSame
}

/** Names of the members that contain 64-bit numbers, at any level of a rule. */
const COUNTS: ReadonlySet<string> = new Set(countsIn(RuleSchema))

function countsIn({ fields }: DescMessage): string[] {
  return fields.flatMap(({ name, message, scalar }) =>
    message === undefined ? (scalar === ScalarType.UINT64 ? [name] : []) : countsIn(message),
  )
}

function storedRule(message: RuleMessage): JsonObject {
  const json = toJson(RuleSchema, message, { useProtoFieldName: true }) as JsonObject
  const { error_message, fields, match, penalty, ...same } = withCounts(json) as JsonObject
  return {
    ...same,
    ...(fields !== undefined && { field: fields }),
    ...(error_message !== undefined && { request_rejection_message: error_message }),
    ...(match !== undefined && { match: storedMatch(match as JsonObject) }),
    ...(penalty !== undefined && { penalty: storedPenalty(penalty as JsonObject) }),
  }
}

function withCounts(json: JsonValue): JsonValue {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return json
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) =>
      // A field to match may also have one of these names, but its value is an object and not a string.
      COUNTS.has(name) && typeof value === "string" ? [name, count(value)] : [name, withCounts(value)],
    ),
  )
}

/**
 * Converts the string to a number. Returns the string unchanged if it is not a safe integer, so that the error
 * message shows the original number.
 */
function count(text: string): number | string {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}

function storedMatch({ fields, ...same }: JsonObject): JsonObject {
  return fields === undefined
    ? same
    : { ...same, fields: mapped(fields, (value) => (value as JsonObject).values ?? []) }
}

function storedPenalty({ for_steps, ...same }: JsonObject): JsonObject {
  return for_steps === undefined ? same : { ...same, for: for_steps }
}

function ruleMessage(stored: JsonObject): RuleMessage {
  const { field, rate, window, anchor, hold, request_rejection_message, rejection, ...others } = stored
  const { match, throttle, penalty, overrides, ...same } = others
  return fromJson(RuleSchema, {
    ...same,
    ...(rate !== undefined && rateMessage(rate as JsonObject)),
    ...(field !== undefined && (Array.isArray(field) ? { fields: field } : { field })),
    ...(window !== undefined && { window: durationText(window) }),
    ...(anchor !== undefined && { anchor: String(anchor) }),
    ...(hold !== undefined && { hold: durationText(hold) }),
    ...(request_rejection_message !== undefined && { error_message: request_rejection_message }),
    ...(rejection !== undefined && { rejection: rejectionMessage(rejection as JsonObject) }),
    ...(match !== undefined && { match: matchMessage(match as JsonObject) }),
    ...(throttle !== undefined && { throttle: throttle === "hard" ? { kind: "hard" } : throttle }),
    ...(penalty !== undefined && { penalty: penaltyMessage(penalty as JsonObject) }),
    ...(overrides !== undefined && { overrides: mapped(overrides, overrideMessage) }),
  })
}

/**
 * Returns the message for the response to refused requests. A body that is an object or an array becomes its JSON
 * text.
 */
function rejectionMessage({ body, ...same }: JsonObject): JsonObject {
  if (body === undefined) return same
  if (typeof body === "string") return { ...same, body }
  return { content_type: "application/json", ...same, body: JSON.stringify(body) }
}

/** Returns a rate, or a limit and a window if the number does not fit into the 32 bits of a rate. */
function rateMessage({ requests_per_unit = 0, unit = "" }: JsonObject): JsonObject {
  return Number(requests_per_unit) <= 0xff_ff_ff_ff
    ? { rate: { requests_per_unit, unit } }
    : { limit: requests_per_unit, window: `1 ${unit}` }
}

function matchMessage({ fields, ...same }: JsonObject): JsonObject {
  return fields === undefined ? same : { ...same, fields: mapped(fields, (values) => ({ values })) }
}

function penaltyMessage({ refusals = 0, within, for: blocked = 0 }: JsonObject): JsonObject {
  return {
    refusals,
    ...(within !== undefined && { within: durationText(within) }),
    ...(Array.isArray(blocked) ? { for_steps: blocked.map(durationText) } : { for: durationText(blocked) }),
  }
}

function overrideMessage(override: JsonValue): JsonValue {
  return typeof override === "number" ? { limit: override } : override
}

function durationText(duration: JsonValue): string {
  return typeof duration === "number" ? `${duration} ms` : String(duration)
}

function mapped(members: JsonValue, change: (value: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(
    Object.entries(members as JsonObject).map(([name, value]) => [name, change(value)]),
  )
}
