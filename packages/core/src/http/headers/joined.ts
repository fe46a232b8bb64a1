import type { HeaderLine } from "../../limiter/options/answer-options.ts"

/**
 * The headers of two mounts: lists grow by the new members; fields with one number tell of the mount that binds, and of no
 * other, of those that tell.
 */
export function joined(
  earlier: readonly HeaderLine[],
  own: readonly HeaderLine[],
  ownBinds: boolean,
): readonly HeaderLine[] {
  // Who tells nothing takes nothing back.
  if (own.length === 0) return earlier
  const lines = new Map(ownBinds ? earlier.filter(isList) : earlier)
  for (const [name, value] of ownBinds ? own : own.filter(isList)) {
    const before = lines.get(name)
    lines.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return [...lines]
}

/** The name of the field. */
export function nameOf([name]: HeaderLine): string {
  return name
}

function isList([name]: HeaderLine): boolean {
  return name === "RateLimit-Policy" || name === "RateLimit"
}
