import type { Store } from "../../stores/store.ts"

interface Claims {
  /** Who counts under which name of which service. */
  readonly owners: Map<string, object>
  readonly claimed: WeakMap<object, ReadonlySet<string>>
  /** Whom to tell when names are given up. */
  readonly waiting: Map<object, () => void>
}

const NO_KEYS: ReadonlySet<string> = new Set()

const claimsOf = new WeakMap<Store, Claims>()

/**
 * Claims rule names of a service on a store for one owner, in place of those that it has claimed before: two limiters
 * that count under one name would charge each other's clients. Where another owner has any of them nothing changes,
 * and those are what it yields; `onFreed` is then called once when names have been given up, so that it can be tried
 * again.
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

/** Releases all names that an owner has claimed on this store; does nothing when it has claimed none. */
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
