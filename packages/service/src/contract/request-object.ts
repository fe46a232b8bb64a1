import type { JsonObject, JsonValue } from "@bufbuild/protobuf"
import { invalidArgument } from "../status-error.ts"

/**
 * Returns the JSON of a ShouldForwardRequestRequest. If its member `request` is an object, the object is replaced by
 * its JSON text. Throws StatusError if `request` is neither an object nor a string. `field` is the path of this
 * member in the body.
 */
export function withRequestText(body: JsonValue, field = "request"): JsonValue {
  if (!isObject(body)) return body
  const { request } = body
  // In protobuf's JSON, null means absent.
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
    // JSON.stringify overflows the stack if thousands of objects are nested.
    throw invalidArgument({ field, description: "is nested too deeply; send an object with fewer levels" })
  }
}

/** Whether a JSON value is an object. */
export function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function kindOf(value: JsonValue): string {
  return Array.isArray(value) ? "an array" : `a ${typeof value}`
}
