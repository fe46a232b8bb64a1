import { createHmac, randomBytes } from "node:crypto"
import { partitionValues } from "@sluice/core/kit"

/** Returns the form in which the page shows the key of a client. */
export type ShowKey = (key: string) => string

/** The counters of all clients, and of all without the rule's field. They identify no client. */
const SHARED: ReadonlySet<string> = new Set(["", "@shared"])
/** Most hashes that are kept, because the same keys are shown every two seconds. */
const MOST_KEPT = 10_000

/** Returns a function that hashes keys, such as "hash:3f9a12c0", by default with a random secret of this process. */
export function hashedKeys(secret: string | Buffer = randomBytes(32)): ShowKey {
  const kept = new Map<string, string>()
  return (key) => {
    if (SHARED.has(key)) return key
    const known = kept.get(key)
    if (known !== undefined) return known
    if (kept.size >= MOST_KEPT) kept.clear()
    const shown = `hash:${createHmac("sha256", secret).update(key).digest("hex").slice(0, 8)}`
    kept.set(key, shown)
    return shown
  }
}

/** Returns a key as the values of the rule's fields: "192.0.2.7", or "user 7, 192.0.2.7" for two fields. */
export function plainKey(key: string): string {
  return valuesOf(key).join(", ")
}

/** Returns the values of the rule's fields that a counter's text contains, or the text itself if it contains none. */
export function valuesOf(key: string): readonly string[] {
  const values = partitionValues(key)
  if (values !== undefined) return values
  return [key.startsWith("@ip:") ? key.slice("@ip:".length) : key]
}
