import { SECRET_NAME } from "../ground/credentials.ts"
import { hash, hashText } from "../ground/hash.ts"
import type { PartitionReader } from "./partition.ts"

/**
 * Matches the ends of names of fields whose values give access, in snake case: `header:authorization`, `cookie:sid`,
 * `body:user.password`, `api_key`.
 */
const SECRET = new RegExp(
  `(${SECRET_NAME}|auth|session|sess(ion)?[-_]?id|(?<![a-z])(sid|jwt|otp)|[^a-z]key)$`,
)

/** True if values of the field give access, by the name of the field. */
function isSecret(field: string): boolean {
  return SECRET.test(field.replace(/(?<=[a-z\d])(?=[A-Z])/g, "_").toLowerCase())
}

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
  if (!(hashKeys ?? fields.some(isSecret))) return undefined
  const secret = hash("sha256", JSON.stringify(key))
  return (partition) => {
    // The first two partitions contain no value of a client. In the third, an address replaces a missing secret.
    if (partition === "" || partition === "@shared" || (!hashKeys && partition.startsWith("@ip:")))
      return partition
    // This hash is as safe as an HMAC, because the key has a fixed length, and half of the hash is cut off, so nobody
    // can continue it.
    return hashText(secret + partition)
  }
}

/** Returns a reader whose partitions are replaced by `hide`. */
export function hidden(read: PartitionReader, hide: (partition: string) => string): PartitionReader {
  return (facts, request) => {
    const partition = read(facts, request)
    return typeof partition === "string" ? hide(partition) : partition
  }
}
