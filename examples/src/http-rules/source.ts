import { RuleSourceError } from "@sluice/core"
import { type RuleSource, readRuleDocument } from "@sluice/rules"

/** Creates a source of rules on an HTTP server. */
export function httpRules(origin: string): RuleSource {
  return {
    name: `rules of ${origin}`,
    pollMs: 10_000,
    async load(service, { signal = null } = {}) {
      const url = `${origin}/rules/${encodeURIComponent(service)}`
      try {
        const response = await fetch(url, { signal })
        if (response.status === 404) return { rules: [], problems: [] }
        if (!response.ok) throw new Error(`status ${response.status}`)
        return readRuleDocument(await response.json())
      } catch (cause) {
        signal?.throwIfAborted()
        throw new RuleSourceError(`${url} has no rules: ${cause}.`, { cause })
      }
    },
  }
}
