import { formatJson, type OutputLine, tinted } from "../line.ts"
import type { MemberChange, RuleChanges } from "../rule-changes.ts"

/** Returns lines such as `+ weekly`, `- daily` and `~ per-user`, followed by each changed member with both values. */
export function changeLines({ added, removed, changed, isReordered }: RuleChanges): OutputLine[] {
  return [
    ...added.map((name): OutputLine => tinted("good", `  + ${name}`)),
    ...removed.map((name): OutputLine => tinted("bad", `  - ${name}`)),
    ...changed.flatMap(({ rule, members }): OutputLine[] => [
      tinted("changed", `  ~ ${rule}`),
      ...memberLines(members),
    ]),
    ...(isReordered ? [tinted("changed", "  ~ the order of the rules")] : []),
  ]
}

/** Returns the line `~ metadata`, followed by each changed member with both values. Empty if nothing has changed. */
export function metadataLines(changes: readonly MemberChange[]): OutputLine[] {
  return changes.length === 0 ? [] : [tinted("changed", "  ~ metadata"), ...memberLines(changes)]
}

function memberLines(members: readonly MemberChange[]): OutputLine[] {
  return members.map(({ member, before, after }) => `      ${member}: ${shown(before)} -> ${shown(after)}`)
}

function shown(value: unknown): string {
  return value === undefined ? "(not given)" : formatJson(value)
}
