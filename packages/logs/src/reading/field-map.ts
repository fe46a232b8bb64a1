import { LogError } from "../log-error.ts"

/** Names for the left side of `--map` that fill the record member with this name. Other names fill bare fields. */
const MEMBERS = new Set(["ip", "time", "method", "url", "status"])
const EXPECTED =
  "expected ip, time, method, url, status, header:NAME, cookie:NAME or the name of a bare field"

/** What an entry of `--map` fills: a member of the record, a header, a cookie or a bare field. */
export type MapTarget =
  | { readonly kind: "ip" | "time" | "method" | "url" | "status" }
  | { readonly kind: "header" | "cookie" | "named"; readonly name: string }

/** Returns the target of an entry of `--map`. Throws LogError if a log cannot fill this target. */
export function mapTarget(field: string): MapTarget {
  if (MEMBERS.has(field)) return { kind: field as "ip" }
  const [kind, name] = field.split(/:(.*)/s)
  if ((kind === "header" || kind === "cookie") && name !== undefined && name !== "") {
    return { kind, name: kind === "header" ? name.toLowerCase() : name }
  }
  if (field === "" || field.includes(":") || field === "service" || field === "route") {
    throw new LogError(`--map cannot fill ${JSON.stringify(field)}: ${EXPECTED}`)
  }
  return { kind: "named", name: field }
}

/** Throws LogError unless every entry of `--map` has a source, and a field that a log can fill. */
export function checkFieldMap(map: Readonly<Record<string, string>>): void {
  for (const [field, source] of Object.entries(map)) {
    mapTarget(field)
    if (source === "") {
      throw new LogError(`--map ${field}= has no source: write, for example, ${field}=client.addr`)
    }
  }
}

/** Returns the fields that entries of `--map` add, as in `RequestFacts.onlyFields`. */
export function mappedNames(map: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(map).flatMap((field) => {
    const target = mapTarget(field)
    switch (target.kind) {
      case "ip":
      case "method":
        return [target.kind]
      case "header":
      case "cookie":
        return [`${target.kind}:${target.name}`]
      case "named":
        return [target.name]
    }
    return []
  })
}
