import type { Problem } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import type { Store } from "../../stores/store.ts"

interface Claims {
  /** The owner of each rule name, by service and name. */
  readonly owners: Map<string, object>
  readonly claimed: WeakMap<object, ReadonlySet<string>>
  /** Callbacks of owners that wait for names to be released. */
  readonly waiting: Map<object, () => void>
}

const NO_KEYS: ReadonlySet<string> = new Set()

const claimsOf = new WeakMap<Store, Claims>()

/**
 * Claims rule names of a service on a store for one owner, and replaces the owner's earlier claims. Without claims,
 * two limiters that use the same rule name would charge each other's clients. If another owner has claimed any of the
 * names, returns these names and changes nothing. In this case, `onFreed` is called once when names have been
 * released, so that the owner can try again.
 */
export function claimNames(
  store: Store,
  service: string,
  names: readonly string[],
  owner: object,
  onFreed?: () => void,
): string[] {
  const claims: Claims = claimsOf.get(store) ?? {
    owners: new Map(),
    claimed: new WeakMap(),
    waiting: new Map(),
  }
  claimsOf.set(store, claims)
  const keyOf = (name: string) => JSON.stringify([service, name])
  const taken = names.filter((name) => (claims.owners.get(keyOf(name)) ?? owner) !== owner)
  if (taken.length > 0) {
    if (onFreed !== undefined) claims.waiting.set(owner, onFreed)
    return taken
  }
  claims.waiting.delete(owner)
  claim(claims, owner, new Set(names.map(keyOf)))
  return []
}

/** Returns the problem that another limiter has claimed a name. */
export function takenProblem(service: string, name: string): Problem {
  const message = `another limiter already counts rule ${show(name)} of service ${show(service)} on this store`
  const accepted = "another name or service, or one limiter for both mounts: rateLimit({ limiter })"
  return { path: "name", message, accepted }
}

/** Releases all names that an owner has claimed on this store; a no-op if it has claimed none. */
export function releaseNames(store: Store, owner: object): void {
  const claims = claimsOf.get(store)
  if (claims === undefined) return
  claims.waiting.delete(owner)
  claim(claims, owner, NO_KEYS)
}

function claim({ owners, claimed, waiting }: Claims, owner: object, keys: ReadonlySet<string>): void {
  const freed = [...(claimed.get(owner) ?? NO_KEYS)].filter((key) => !keys.has(key))
  for (const key of freed) owners.delete(key)
  for (const key of keys) owners.set(key, owner)
  claimed.set(owner, keys)
  if (freed.length === 0) return
  const told = [...waiting.values()]
  waiting.clear()
  for (const onFreed of told) onFreed()
}
