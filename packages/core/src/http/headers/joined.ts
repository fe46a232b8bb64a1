import type { HeaderLine } from "../../ground/answer.ts"

/**
 * Returns the combined headers of two mounts. New members are appended to list fields. Fields with one number are taken
 * from the mount that binds. `isList` is true for list fields. A mount without headers changes nothing.
 */
export function joined(
  earlier: readonly HeaderLine[],
  own: readonly HeaderLine[],
  ownBinds: boolean,
  isList: (line: HeaderLine) => boolean,
): readonly HeaderLine[] {
  if (own.length === 0) return earlier
  const lines = new Map(ownBinds ? earlier.filter(isList) : earlier)
  for (const [name, value] of ownBinds ? own : own.filter(isList)) {
    const before = lines.get(name)
    lines.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return [...lines]
}

/** Returns the name of the field. */
export function nameOf([name]: HeaderLine): string {
  return name
}
