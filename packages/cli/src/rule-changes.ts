import { formatRuleDocument, ruleName, type ServiceMetadata, type StorableRule } from "@sluice/rules"

/** A changed member of a stored rule. A value is undefined if the rule does not contain the member. */
export interface MemberChange {
  readonly member: string
  readonly before: unknown
  readonly after: unknown
}

/** The differences between two lists of rules. Rules are identified by their names. */
export interface RuleChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly { readonly rule: string; readonly members: readonly MemberChange[] }[]
  /**
   * True if the order of the rules differs. The order matters, because the first of equally strict rules is reported.
   */
  readonly isReordered: boolean
}

/**
 * Returns the changes between two lists of rules. Different spellings of a value are equal: "60s" and "1 minute" are
 * the same window.
 */
export function ruleChanges(before: readonly StorableRule[], after: readonly StorableRule[]): RuleChanges {
  const [old, now] = [byName(before), byName(after)]
  const changed = [...now].flatMap(([rule, members]) => {
    const earlier = old.get(rule)
    const changes = earlier === undefined ? [] : memberChanges(earlier, members)
    return changes.length === 0 ? [] : [{ rule, members: changes }]
  })
  const kept = (names: Iterable<string>, others: ReadonlyMap<string, RuleMembers>): string =>
    JSON.stringify([...names].filter((name) => others.has(name)))
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    changed,
    isReordered: kept(old.keys(), now) !== kept(now.keys(), old),
  }
}

/**
 * Returns the changes that a document with this metadata would make. A document without metadata leaves the stored
 * metadata unchanged.
 */
export function metadataChanges(
  before: ServiceMetadata | undefined,
  after: ServiceMetadata | undefined,
): readonly MemberChange[] {
  return after === undefined ? [] : memberChanges({ ...before }, { ...after })
}

/** True if there is no change at all. */
export function isUnchanged({ added, removed, changed, isReordered }: RuleChanges): boolean {
  return added.length + removed.length + changed.length === 0 && !isReordered
}

type RuleMembers = Readonly<Record<string, unknown>>

function byName(rules: readonly StorableRule[]): ReadonlyMap<string, RuleMembers> {
  // The service is not compared.
  const stored = formatRuleDocument("any", rules).rules
  return new Map(rules.map((rule, index) => [ruleName(rule), comparable(stored[index] as RuleMembers)]))
}

/**
 * Converts a rate to a limit and a window for the comparison. Turns each override into a member of its own, because a
 * rule may have many overrides.
 */
function comparable({ rate, overrides = {}, ...members }: RuleMembers): RuleMembers {
  const others = Object.entries(overrides as object).map(([value, override]) => [
    `overrides[${JSON.stringify(value)}]`,
    override,
  ])
  const compared = { ...members, ...Object.fromEntries(others) }
  if (rate === undefined) return compared
  const { requests_per_unit: limit, unit } = rate as { requests_per_unit: number; unit: string }
  return { ...compared, limit, window: `1 ${unit}` }
}

function memberChanges(before: RuleMembers, after: RuleMembers): MemberChange[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((member) => ({ member, before: before[member], after: after[member] }))
    .filter(({ before: old, after: now }) => canonical(old) !== canonical(now))
}

/** Returns the same string for equal values, because DynamoDB does not preserve the order of a map's members. */
function canonical(value: unknown): string | undefined {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}
