import type { Pausable } from "../../ground/slices.ts"
import { compilePath, methodSet, routeShape } from "../../rules/matching/match.ts"
import { type PrefixSegment, pathPrefix } from "../../rules/matching/path-prefix.ts"
import type { ParsedRule, RuleMatch } from "../../rules/rule.ts"
import { NO_STEPS, type StepSet } from "./steps.ts"

/** Minimum number of rules with a `match` for an index. With fewer rules, checking all of them is as fast. */
const LEAST_MATCHES = 16
/** Minimum number of values of a field for an index by value. With fewer values, checking all rules is as fast. */
const LEAST_VALUES = 8
/** Fields whose values are not compared literally, or are compared differently by each rule. */
const NOT_INDEXED: ReadonlySet<string> = new Set(["ip", "method", "route"])

/** The parts of a request that the index uses. */
export interface IndexedRequest {
  /** True if the request has one of the methods. */
  hasMethod(methods: ReadonlySet<string>): boolean
  /** The readings of the request's path. */
  readonly paths: readonly string[]
  readonly route: string | undefined
  /** Whether the request is a CORS preflight, which only rules for OPTIONS count. */
  readonly isPreflight: boolean
  /** The steps whose rules are to be found. */
  readonly steps: StepSet
  /** Returns the value of a field as the rule at this position reads it. */
  fieldText(position: number, field: string): string | undefined
}

/** Rules with the same step, methods and path. */
interface Group {
  readonly step: StepSet
  readonly methods: ReadonlySet<string> | undefined
  readonly path: string | undefined
  /** Positions of rules in the rule set, ascending. */
  readonly positions: number[]
  /**
   * The positions of the rules by the value of a field. Undefined if no field has many different values in these
   * rules.
   */
  byValue: ValueIndex | undefined
}

interface ValueIndex {
  readonly field: string
  readonly positions: ReadonlyMap<string | undefined, readonly number[]>
  /** Positions of rules in the group whose `match` does not use this field. */
  readonly others: readonly number[]
  /** Returns whether the group's path matches the request. Compiled on first use. */
  covers: ((paths: readonly string[], route: string | undefined) => boolean) | undefined
}

/** A node for one path segment, with the groups whose pattern begins with the segments up to this node. */
interface IndexNode {
  readonly groups: Group[]
  readonly next: Map<PrefixSegment, IndexNode>
}

/**
 * Finds the rules of a large rule set that may apply to a request, by method, path prefix, route and the values of
 * fields. The index never omits a rule that matches, but may return rules that do not match. The matcher decides.
 */
export class RuleIndex {
  readonly #root: IndexNode
  readonly #groups: readonly Group[]
  /** The groups by the shape of their path. Created for the first request whose route is known. */
  #byShape: ReadonlyMap<string | undefined, readonly Group[]> | undefined

  /**
   * Builds an index of the rules. `stepsOf` contains the decision step of each rule. Returns undefined if there are
   * few rules.
   */
  static *of(rules: readonly ParsedRule[], stepsOf: readonly StepSet[]): Pausable<RuleIndex | undefined> {
    const matches = rules.filter(({ match }) => match !== undefined)
    if (matches.length < LEAST_MATCHES) return undefined
    const root: IndexNode = { groups: [], next: new Map() }
    const groups = yield* groupsOf(rules, stepsOf)
    for (const group of groups) {
      const { path } = group
      nodeAt(root, path === undefined ? [] : pathPrefix(path)).groups.push(group)
      yield
    }
    return new RuleIndex(root, groups)
  }

  private constructor(root: IndexNode, groups: readonly Group[]) {
    this.#root = root
    this.#groups = groups
  }

  /** Returns the positions of the rules that may apply to the request, in ascending order. */
  candidates(request: IndexedRequest): readonly number[] {
    const found: number[] = []
    const { paths, route } = request
    if (paths.length === 0) addGroups(this.#root.groups, request, found)
    for (const path of paths) addAlong(this.#root, path, 1, request, found)
    if (route !== undefined) {
      this.#byShape ??= byShape(this.#groups)
      addGroups(this.#byShape.get(routeShape(route)) ?? [], request, found)
    }
    return ascending(found)
  }
}

function byShape(groups: readonly Group[]): ReadonlyMap<string | undefined, readonly Group[]> {
  const shapes = new Map<string | undefined, Group[]>()
  for (const group of groups) {
    if (group.path === undefined) continue
    const shape = routeShape(group.path)
    const same = shapes.get(shape)
    if (same === undefined) shapes.set(shape, [group])
    else same.push(group)
  }
  return shapes
}

function* groupsOf(rules: readonly ParsedRule[], stepsOf: readonly StepSet[]): Pausable<readonly Group[]> {
  const groups = new Map<string, Group>()
  for (const [position, rule] of rules.entries()) {
    const { methods, path } = rule.match ?? {}
    const step = stepsOf[position] as StepSet
    // Groups with the same methods in another order stay separate, which does not change the result.
    const key = JSON.stringify([step, methods, path])
    const group = groups.get(key)
    if (group !== undefined) group.positions.push(position)
    else {
      const set = methods === undefined ? undefined : methodSet(methods)
      groups.set(key, { step, methods: set, path, positions: [position], byValue: undefined })
    }
    yield
  }
  for (const group of groups.values()) group.byValue = yield* valueIndexOf(group.positions, rules)
  return [...groups.values()]
}

/** Indexes the rules by the field with the most different values. */
function* valueIndexOf(
  positions: readonly number[],
  rules: readonly ParsedRule[],
): Pausable<ValueIndex | undefined> {
  if (positions.length < LEAST_VALUES) return undefined
  const byField = new Map<string, Map<string, number[]>>()
  for (const position of positions) {
    for (const [field, values] of Object.entries(fieldsOf(rules, position))) {
      if (NOT_INDEXED.has(field)) continue
      const byValue = byField.get(field) ?? new Map<string, number[]>()
      byField.set(field, byValue)
      for (const value of new Set(values)) {
        const same = byValue.get(value)
        if (same === undefined) byValue.set(value, [position])
        else same.push(position)
      }
    }
    yield
  }
  let best: [field: string, byValue: Map<string, number[]>] | undefined
  for (const entry of byField) if (best === undefined || entry[1].size > best[1].size) best = entry
  if (best === undefined || best[1].size < LEAST_VALUES) return undefined
  const [field, byValue] = best
  const others = positions.filter((position) => !Object.hasOwn(fieldsOf(rules, position), field))
  return { field, positions: byValue, others, covers: undefined }
}

/** Returns the fields in the `match` of the rule at this position, with the values that match. */
function fieldsOf(rules: readonly ParsedRule[], position: number): NonNullable<RuleMatch["fields"]> {
  return (rules[position] as ParsedRule).match?.fields ?? {}
}

function nodeAt(root: IndexNode, segments: readonly PrefixSegment[]): IndexNode {
  let node = root
  for (const segment of segments) {
    const next: IndexNode = node.next.get(segment) ?? { groups: [], next: new Map() }
    node.next.set(segment, next)
    node = next
  }
  return node
}

/** Adds the rules of a node, and of the nodes below it along a path. The next segment of the path begins at `at`. */
function addAlong(node: IndexNode, path: string, at: number, request: IndexedRequest, found: number[]): void {
  addGroups(node.groups, request, found)
  if (at >= path.length) return
  if (node.next.size === 0) return
  const slash = path.indexOf("/", at)
  const end = slash === -1 ? path.length : slash
  const same = node.next.get(path.slice(at, end))
  if (same !== undefined) addAlong(same, path, end + 1, request, found)
  const any = node.next.get(undefined)
  if (any !== undefined) addAlong(any, path, end + 1, request, found)
}

function addGroups(groups: readonly Group[], request: IndexedRequest, found: number[]): void {
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i] as Group
    // Do not read a field of the app before its step, because the value may not exist yet.
    if ((group.step & request.steps) === NO_STEPS) continue
    if (isForMethod(group, request)) addPositions(group, request, found)
  }
}

function isForMethod({ methods }: Group, request: IndexedRequest): boolean {
  if (request.isPreflight) return methods?.has("OPTIONS") === true
  return methods === undefined || request.hasMethod(methods)
}

function addPositions({ path, positions, byValue }: Group, request: IndexedRequest, found: number[]): void {
  if (byValue === undefined) {
    append(found, positions)
    return
  }
  if (path !== undefined) {
    byValue.covers ??= compilePath(path)
    // Read the field only if the rules apply to the request, because the app's function may be slow or cause a
    // warning.
    if (!byValue.covers(request.paths, request.route)) return
  }
  append(found, byValue.others)
  const text = request.fieldText(firstOf(byValue), byValue.field)
  append(found, byValue.positions.get(text) ?? [])
}

function firstOf({ positions }: ValueIndex): number {
  const [first] = positions.values()
  return first?.[0] as number
}

function append(found: number[], positions: readonly number[]): void {
  for (let i = 0; i < positions.length; i++) found.push(positions[i] as number)
}

/**
 * Returns the positions in the order of the rules, without duplicates. Duplicates exist if several readings of a path
 * match the same rule.
 */
function ascending(found: number[]): readonly number[] {
  for (let i = 1; i < found.length; i++) {
    if ((found[i] as number) > (found[i - 1] as number)) continue
    return [...new Set(found)].sort((one, other) => one - other)
  }
  return found
}
