import type { Store } from "../stores/store.ts"

const claims = new WeakMap<Store, Map<string, object>>()

/**
 * Claims rule names of a service on a store for one owner, in place of those that it has claimed before: two limiters
 * that count under one name would charge each other's clients. Where another owner has any of them nothing changes,
 * and those are what it yields.
 */
export function claimNames(store: Store, service: string, names: readonly string[], owner: object): string[] {
  const owners = claims.get(store) ?? new Map<string, object>()
  claims.set(store, owners)
  const keyOf = (name: string) => JSON.stringify([service, name])
  const taken = names.filter((name) => (owners.get(keyOf(name)) ?? owner) !== owner)
  if (taken.length > 0) return taken
  releaseNames(store, owner)
  for (const name of names) owners.set(keyOf(name), owner)
  return []
}

export function releaseNames(store: Store, owner: object): void {
  const owners = claims.get(store)
  for (const [key, other] of owners ?? []) if (other === owner) owners?.delete(key)
}
