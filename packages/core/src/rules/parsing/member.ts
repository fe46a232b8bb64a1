import type { Schema } from "../../ground/shape.ts"

/** The names of members in documents, by their different names in code. */
export type StoredNames = Readonly<Record<string, string>>

/** A member of a rule as code, documents and the JSON Schema know it. */
export interface RuleMember<Value = unknown> {
  /** The names in documents. The first name is written, and the other names are older. Default: the name in code. */
  readonly stored?: readonly [string, ...string[]]
  /** The values in code. */
  readonly shape: Schema
  /** The values in documents. Default: `shape`. */
  readonly storedShape?: Schema
  /** For an object: the names of its direct members in documents. */
  readonly names?: StoredNames
  /** The default of the member, if it is the same for all rules. */
  readonly default?: Value
  /** Returns the form in which a value is written into a document. By default, a value is written unchanged. */
  store?(value: Value): unknown
  /** The description that editors show in documents. */
  readonly description: string
}

/**
 * Returns a copy of the object whose members are renamed by the table `names`. Also renames the members of `queue`.
 */
export function renamed<Value>(
  members: Readonly<Record<string, Value>>,
  names: StoredNames,
): Readonly<Record<string, Value>> {
  const entries = Object.entries(members).map(([name, value]) => [
    names[name] ?? name,
    name === "queue" ? renamed(value as Readonly<Record<string, unknown>>, names) : value,
  ])
  return Object.fromEntries(entries)
}

/** Returns a copy without undefined members. */
export function given(members: object): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) if (value !== undefined) copy[name] = value
  return copy
}
