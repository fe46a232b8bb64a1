import { InvalidRuleError, parseRuleDocument, type RuleSource, RuleSourceError } from "@sluice/core"

export function httpRules(origin: string): RuleSource {
  return {
    name: `rules of ${origin}`,
    pollMs: 10_000,
    async load(service, { signal } = {}) {
      signal?.throwIfAborted()
      const answer = await fetch(`${origin}/rules/${encodeURIComponent(service)}`, {
        ...(signal && { signal }),
      }).catch((cause: unknown) => {
        signal?.throwIfAborted()
        throw new RuleSourceError(`${origin} cannot be reached.`, { cause })
      })
      if (answer.status === 404) return { rules: [], problems: [] }
      if (!answer.ok) throw new RuleSourceError(`${origin} answered ${answer.status}.`)
      const document: unknown = await answer.json()
      try {
        return { rules: parseRuleDocument(document), problems: [] }
      } catch (error) {
        if (!(error instanceof InvalidRuleError)) throw error
        throw new RuleSourceError(error.message, { cause: error })
      }
    },
  }
}
