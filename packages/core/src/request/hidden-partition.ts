import { SECRET_NAME } from "../ground/credentials.ts"
import { hash, hashText } from "../ground/hash.ts"
import type { PartitionReader } from "./partition.ts"

/**
 * Matches the end of a field name, in snake case, if values of the field grant access: `header:authorization`,
 * `cookie:sid`, `body:user.password`, `api_key`.
 */
const SECRET = new RegExp(
  `(${SECRET_NAME}|auth|session|sess(ion)?[-_]?id|(?<![a-z])(sid|jwt|otp)|[^a-z]key)$`,
)

/** True if values of the field grant access, judging by its name. */
function isSecret(field: string): boolean {
  return SECRET.test(field.replace(/(?<=[a-z\d])(?=[A-Z])/g, "_").toLowerCase())
}

/**
 * Returns a function that replaces a partition by a keyed hash of 132 bits. Returns such a function only if the rule
 * counts by a secret or if all partitions are hidden. Otherwise returns undefined. The same field values have the
 * same hash under each rule, because the counters of one client share a slot of a Redis cluster. A hash begins with
 * "#", which cannot begin a client's own value.
 */
export function compileHiding(
  fields: readonly string[],
  hashKeys: boolean | undefined,
  key: readonly string[],
): ((partition: string) => string) | undefined {
  if (!(hashKeys ?? fields.some(isSecret))) return undefined
  const secret = hash("sha256", JSON.stringify(key))
  return (partition) => {
    // Do not hash these partitions. The first two contain no value of a client, and in the third, an address replaces
    // a missing secret.
    if (partition === "" || partition === "@shared" || (!hashKeys && partition.startsWith("@ip:")))
      return partition
    // This hash is as safe as an HMAC. The key has a fixed length, and half of the hash is cut off, so a
    // length-extension attack is not possible.
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
