import { createHmac, randomBytes } from "node:crypto"
import { partitionValues } from "@sluice/core/kit"

/** The forms in which the page contains the key of a client. */
export interface KeyForms {
  /** Returns the key as the page shows it. Two keys may look the same. */
  show(key: string): string
  /** Returns a text that identifies the key in a change. Different keys have different texts. */
  id(key: string): string
  /** True if the page has lately shown the key as this text. Hashing all recorded keys would take too long. */
  isShownAs(key: string, text: string): boolean
  /** True if the text is a hash that `show` may have returned, and not an address or a value. */
  isHash(text: string): boolean
}

/** The counters of all clients, and of all without the rule's field. They identify no client. */
const SHARED: ReadonlySet<string> = new Set(["", "@shared"])
/** Most hashes that are kept, because the same keys are shown every two seconds. */
const MOST_KEPT = 10_000

/** Hashes keys, such as "hash:3f9a12c0", by default with a random secret of this process. */
export function hashedKeys(secret: string | Buffer = randomBytes(32)): KeyForms {
  const kept = new Map<string, string>()
  const id = (key: string): string => createHmac("sha256", secret).update(key).digest("hex")
  return {
    id,
    isShownAs: (key, text) => (SHARED.has(key) ? key : kept.get(key)) === text,
    isHash: (text) => /^hash:[0-9a-f]{8}$/.test(text),
    show(key) {
      if (SHARED.has(key)) return key
      const known = kept.get(key)
      if (known !== undefined) return known
      if (kept.size >= MOST_KEPT) kept.clear()
      const shown = `hash:${id(key).slice(0, 8)}`
      kept.set(key, shown)
      return shown
    },
  }
}

/** Shows a key as the values of the rule's fields: "192.0.2.7", or "user 7, 192.0.2.7" for two fields. */
export const plainKeys: KeyForms = {
  show: (key) => valuesOf(key).join(", "),
  isShownAs: (key, text) => plainKeys.show(key) === text,
  id: (key) => key,
  isHash: () => false,
}

/** Returns the values of the rule's fields that a counter's text contains, or the text itself if it contains none. */
export function valuesOf(key: string): readonly string[] {
  const values = partitionValues(key)
  if (values !== undefined) return values
  return [key.startsWith("@ip:") ? key.slice("@ip:".length) : key]
}
