import { createHmac, randomBytes } from "node:crypto"

/** Returns a function that hashes names. Its key is new in each run, because hashes of all addresses could be tried. */
export function hiddenNames(): (name: string) => string {
  const key = randomBytes(32)
  return (name) => createHmac("sha256", key).update(name).digest("hex").slice(0, 16)
}
