import { isIP } from "node:net"
import type { ParsedRule } from "@sluice/rules"
import { type AskedRequest, factsOf } from "../deciding/asked-request.ts"
import { invalidArgument } from "../status-error.ts"

/**
 * Returns a request of the client whose fields have these values. The values are in the order of the rule's fields.
 * Throws StatusError if the values do not fit the fields. Every field needs a value, because a request without a
 * field would identify other clients.
 */
export function requestOf({ name, fields }: ParsedRule, values: readonly string[]): AskedRequest {
  if (values.length !== fields.length) {
    const counted = fields.length === 0 ? "counts the whole service" : `counts by ${fields.join(" and ")}`
    const has = values.length === 1 ? "1 value" : `${values.length} values`
    throw wrong(`has ${has}; rule ${JSON.stringify(name)} ${counted}, so give ${fields.length}`)
  }
  const known: Record<string, unknown> = Object.create(null)
  for (const [index, field] of fields.entries()) put(known, field, values[index] as string)
  return { known, facts: factsOf(known), cost: 1, units: undefined }
}

/** Maps the prefix of a field to the member of a request that contains such fields. */
const HOLDERS: Readonly<Record<string, string>> = { header: "headers", query: "query", cookie: "cookies" }

function put(known: Record<string, unknown>, field: string, value: string): void {
  if (value === "") throw wrong("is empty; give the value of the field")
  if (field === "ip" && isIP(value) === 0) throw wrong(`${JSON.stringify(value)} is not an IP address`)
  const colon = field.indexOf(":")
  if (colon === -1) {
    known[field] = value
    return
  }
  const [prefix, name] = [field.slice(0, colon), field.slice(colon + 1)]
  const path = prefix === "body" ? name.split(".") : [HOLDERS[prefix], name]
  if (path[0] === undefined)
    throw wrong(`cannot be identified: requests to the service have no ${JSON.stringify(field)}`)
  let holder = known
  for (const key of path.slice(0, -1) as string[]) {
    holder[key] ??= Object.create(null)
    holder = holder[key] as Record<string, unknown>
  }
  holder[path.at(-1) as string] = value
}

function wrong(description: string) {
  return invalidArgument({ field: "client", description })
}
