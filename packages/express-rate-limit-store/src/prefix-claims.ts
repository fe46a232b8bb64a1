import { InvalidOptionError } from "@sluice/core"

/** The owner of each prefix, by client or store. */
const claims = new WeakMap<object, Map<string, object>>()

/**
 * Claims a prefix on a Redis client or a store, because two limiters with the same prefix would count each other's
 * hits.
 * @throws {@link InvalidOptionError} if another owner has claimed it
 */
export function claimPrefix(place: object, prefix: string, owner: object): void {
  const owners = claims.get(place) ?? new Map<string, object>()
  claims.set(place, owners)
  if (owners.has(prefix)) {
    const message = `another SluiceStore already counts with the prefix ${JSON.stringify(prefix)} there`
    const accepted =
      'a different prefix for each limiter, such as "login:", or shutdown() of the other store first'
    throw new InvalidOptionError([{ path: "prefix", message, accepted }])
  }
  owners.set(prefix, owner)
}

/** Releases the prefix, unless another owner has claimed it since. */
export function releasePrefix(place: object, prefix: string, owner: object): void {
  const owners = claims.get(place)
  if (owners?.get(prefix) === owner) owners.delete(prefix)
}
