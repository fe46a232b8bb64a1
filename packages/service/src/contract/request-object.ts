import type { JsonObject, JsonValue } from "@bufbuild/protobuf"
import { invalidArgument } from "../status-error.ts"

/**
 * Returns a ShouldForwardRequestRequest in JSON whose member `request` may be a JSON object, with the text of that object instead.
 * Throws StatusError for any other value than an object or a text; `field` is its place in the body.
 */
export function withRequestText(body: JsonValue, field = "request"): JsonValue {
  if (!isObject(body)) return body
  const { request } = body
  // Null is absent in protobuf's JSON.
  if (typeof request === "string" || request === undefined || request === null) return body
  if (!isObject(request)) {
    throw invalidArgument({ field, description: `is ${kindOf(request)}; send a JSON object, or its text` })
  }
  return { ...body, request: textOf(request, field) }
}

function textOf(request: JsonObject, field: string): string {
  try {
    return JSON.stringify(request)
  } catch {
    // The stack is too small for thousands of objects within each other.
    throw invalidArgument({ field, description: "is nested too deeply; send an object with fewer levels" })
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function kindOf(value: JsonValue): string {
  return Array.isArray(value) ? "an array" : `a ${typeof value}`
}
