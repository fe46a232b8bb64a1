import type { Store } from "../stores/store.ts"

const claims = new WeakMap<Store, Map<string, object>>()

/**
 * Claims rule names of a service on a store for one owner, and yields those that another owner has: two limiters
 * that count under one name would charge each other's clients. What the owner claimed before and does not name is
 * released.
 */
export function claimNames(store: Store, service: string, names: readonly string[], owner: object): string[] {
  let owners = claims.get(store)
  if (owners === undefined) {
    owners = new Map()
    claims.set(store, owners)
  }
  const keyOf = (name: string) => JSON.stringify([service, name])
  releaseNames(store, owner)
  const taken = names.filter((name) => owners.has(keyOf(name)))
  for (const name of names) if (!taken.includes(name)) owners.set(keyOf(name), owner)
  return taken
}

export function releaseNames(store: Store, owner: object): void {
  const owners = claims.get(store)
  for (const [key, other] of owners ?? []) if (other === owner) owners?.delete(key)
}
