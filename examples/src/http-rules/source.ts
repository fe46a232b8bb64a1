import { RuleSourceError } from "@sluice/core"
import { type RuleSource, readRuleDocument } from "@sluice/rules"

/**
 * Creates a rule source that gets one document for each service from your own HTTP
 * server.
 */
export function httpRules(origin: string): RuleSource {
  return {
    name: `rules of ${origin}`,
    pollMs: 10_000,
    async load(service, { signal = null } = {}) {
      const url = `${origin}/rules/${encodeURIComponent(service)}`
      try {
        const answer = await fetch(url, { signal })
        if (answer.status === 404) return { rules: [], problems: [] }
        if (!answer.ok) throw new Error(`it answered ${answer.status}`)
        return readRuleDocument(await answer.json())
      } catch (cause) {
        signal?.throwIfAborted()
        throw new RuleSourceError(`${url} has no rules: ${cause}.`, { cause })
      }
    },
  }
}
