import { formatJson, type Line, tinted } from "../line.ts"
import type { RuleChanges } from "../rule-changes.ts"

/** `+ weekly`, `- daily`, `~ per-user` and below it each member with both values. */
export function changeLines({ added, removed, changed, isReordered }: RuleChanges): Line[] {
  return [
    ...added.map((name): Line => tinted("good", `  + ${name}`)),
    ...removed.map((name): Line => tinted("bad", `  - ${name}`)),
    ...changed.flatMap(({ rule, members }): Line[] => [
      tinted("changed", `  ~ ${rule}`),
      ...members.map(
        ({ member, before, after }): Line => `      ${member}: ${shown(before)} -> ${shown(after)}`,
      ),
    ]),
    ...(isReordered ? [tinted("changed", "  ~ the order of the rules")] : []),
  ]
}

function shown(value: unknown): string {
  return value === undefined ? "(not given)" : formatJson(value)
}
