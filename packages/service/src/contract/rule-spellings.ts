import type { JsonObject, JsonValue } from "@bufbuild/protobuf"
import { isObject } from "./request-object.ts"

/** Maps the names that files, code and the prose about the contract use to the names in the message. */
const OF_RULE: Spellings = {
  request_rejection_message: "error_message",
  rejection_message: "error_message",
  rejectionMessage: "error_message",
}
const OF_RATE: Spellings = { request_per_unit: "requests_per_unit", requestPerUnit: "requests_per_unit" }

type Spellings = Readonly<Record<string, string>>

/** Returns the JSON of a RegisterServiceRequest with the names of the contract. */
export function withContractNames(body: JsonValue): JsonValue {
  if (!isObject(body)) return body
  const { rule, rules } = body
  return {
    ...body,
    ...(rule !== undefined && { rule: ruleOf(rule) }),
    ...(Array.isArray(rules) && { rules: rules.map(ruleOf) }),
  }
}

function ruleOf(rule: JsonValue): JsonValue {
  if (!isObject(rule)) return rule
  const { rate, anchor } = rule
  // Files contain the day of a month or a week as a number.
  const same = typeof anchor === "number" ? { ...rule, anchor: String(anchor) } : rule
  const renamed = withNames(same, OF_RULE)
  return rate !== undefined && isObject(rate) ? { ...renamed, rate: withNames(rate, OF_RATE) } : renamed
}

/**
 * Returns the object with its members renamed. Keeps the old name if the object also contains the new name, so that
 * the parser rejects the object.
 */
function withNames(object: JsonObject, spellings: Spellings): JsonObject {
  const named: JsonObject = { ...object }
  for (const [spelling, name] of Object.entries(spellings)) {
    const value = named[spelling]
    if (value === undefined || named[name] !== undefined) continue
    delete named[spelling]
    named[name] = value
  }
  return named
}
