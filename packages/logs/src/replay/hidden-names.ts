import { createHmac, randomBytes } from "node:crypto"

/**
 * Returns a function that hashes names. The key is random in each run. With a fixed key, anyone could hash all
 * addresses and compare the hashes.
 */
export function hiddenNames(): (name: string) => string {
  const key = randomBytes(32)
  return (name) => createHmac("sha256", key).update(name).digest("hex").slice(0, 16)
}
