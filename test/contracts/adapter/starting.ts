import { RuleSourceError } from "@sluice/core"
import { liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect } from "vitest"
import { type Behaves, statuses } from "./stage.ts"

const RULE = { name: "rule", field: "ip", limit: 2, window: "1 minute" }

/** Returns a source that fails to load, like a source on an unreachable network, until rules are published. */
function failingSource(): { readonly source: RuleSource; publish(): void } {
  let isThere = false
  const listeners = new Set<() => void>()
  return {
    source: {
      async load() {
        if (!isThere) throw new RuleSourceError("The table is gone.")
        return { rules: [RULE], problems: [] }
      },
      watch(changed) {
        listeners.add(changed)
        return () => listeners.delete(changed)
      },
    },
    publish() {
      isThere = true
      for (const changed of listeners) changed()
    },
  }
}

/** Registers the behaviors before the rules of a network source have loaded for the first time. */
export function starting(behaves: Behaves): void {
  describe("until rules are loaded", () => {
    behaves('answers 503 with "deny", and counts as soon as there are rules', async ({ limited }) => {
      const { source, publish } = failingSource()
      let handled = 0
      const client = await limited(
        { rules: liveRules(source), onRulesMissing: "deny" },
        { routes: [{ path: "/", handle: () => ({ body: String(++handled) }) }] },
      )
      const { status, headers, body } = await client("/")
      expect(status).toBe(503)
      expect(headers["retry-after"]).toBe("1")
      expect(headers["cache-control"]).toBe("no-store")
      expect(JSON.parse(body)).toEqual({
        type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        title: "Temporary Reduced Capacity",
        status: 503,
        detail: "The quota cannot be checked at the moment. Try again in 1 second.",
      })
      expect(handled).toBe(0)
      publish()
      expect(await statuses(client, 3)).toEqual([200, 200, 429])
    })
  })
}
