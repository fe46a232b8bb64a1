import { SECRET_NAME } from "../ground/credentials.ts"
import { hash, hashText } from "../ground/hash.ts"

/** Names of fields whose values give access: `header:authorization`, `cookie:sid`, `body:user.password`, `apiKey`. */
const SECRET = new RegExp(
  `(${SECRET_NAME}|sess(ion)?[-_]?id|(?<![a-z])(auth|session|sid|jwt|otp)|[^a-z]key)$`,
  "i",
)

/**
 * Returns a function that replaces a partition by a keyed hash of 132 bits, if its rule counts by a secret or if all
 * partitions are hidden. Otherwise returns undefined. The same fields have the same hash under each rule, because the
 * counters of one client share a slot of a Redis cluster. The "#" cannot begin a client's own value.
 */
export function compileHiding(
  fields: readonly string[],
  hashKeys: boolean | undefined,
  key: readonly string[],
): ((partition: string) => string) | undefined {
  if (!(hashKeys ?? fields.some((name) => SECRET.test(name)))) return undefined
  const secret = hash("sha256", JSON.stringify(key))
  return (partition) => {
    // The first two show no value of a client. An address stands in for a missing secret.
    if (partition === "" || partition === "@shared" || (!hashKeys && partition.startsWith("@ip:")))
      return partition
    // As safe as an HMAC: the key has a fixed length, and nobody can continue a hash of which half is cut off.
    return hashText(secret + partition)
  }
}
