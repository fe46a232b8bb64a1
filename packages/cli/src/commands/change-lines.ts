import { formatJson, type OutputLine, tinted } from "../line.ts"
import type { RuleChanges } from "../rule-changes.ts"

/** Returns lines such as `+ weekly`, `- daily` and `~ per-user`, followed by each changed member with both values. */
export function changeLines({ added, removed, changed, isReordered }: RuleChanges): OutputLine[] {
  return [
    ...added.map((name): OutputLine => tinted("good", `  + ${name}`)),
    ...removed.map((name): OutputLine => tinted("bad", `  - ${name}`)),
    ...changed.flatMap(({ rule, members }): OutputLine[] => [
      tinted("changed", `  ~ ${rule}`),
      ...members.map(
        ({ member, before, after }): OutputLine => `      ${member}: ${shown(before)} -> ${shown(after)}`,
      ),
    ]),
    ...(isReordered ? [tinted("changed", "  ~ the order of the rules")] : []),
  ]
}

function shown(value: unknown): string {
  return value === undefined ? "(not given)" : formatJson(value)
}
