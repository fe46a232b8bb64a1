import { type FoundRules, type LoadedRules, parseRuleDocument, type RuleSource } from "@sluice/rules"

/**
 * Services per page. A page of the DynamoDB source contains a tenth of this number, so these pages are more work
 * without a pause.
 */
const PAGE = 500
/** Time until the source returns a page, which needs no decoding here. */
const ANSWER_MS = 5

/** The stored document of a service. */
export interface StoredDocument {
  readonly service_id: string
  readonly version: number
  readonly rules: readonly object[]
}

/** Returns a document with two rules, or with three if the limit is even. */
export function documentOf(service: string, version: number, limit: number): StoredDocument {
  const rules: object[] = [
    {
      name: "per-user",
      field: "user_id",
      rate: { requests_per_unit: limit, unit: "minute" },
      request_rejection_message: "retry-with-exponential-backoff",
    },
    { name: "daily", rate: { requests_per_unit: 1_000_000, unit: "day" } },
  ]
  if (limit % 2 === 0) {
    rules.push({
      name: "login",
      field: "ip",
      limit: 5,
      window: "15 minutes",
      match: { methods: ["POST"], path: "/login/:realm" },
    })
  }
  return { service_id: service, version, rules }
}

/**
 * A rule source in memory, with a document for each service. A document contains two or three rules and can be
 * changed.
 */
export class StoredServices implements RuleSource {
  readonly name = "the stored services"
  readonly pollMs: number
  readonly #documents = new Map<string, StoredDocument>()

  constructor(count: number, pollMs: number) {
    this.pollMs = pollMs
    for (let index = 0; index < count; index++) this.write(`service-${index}`, 1, 5 + index)
  }

  /** Replaces the rules of a service. */
  write(service: string, version: number, limit: number): void {
    this.#documents.set(service, documentOf(service, version, limit))
  }

  async load(service: string): Promise<LoadedRules> {
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS))
    const document = this.#documents.get(service)
    if (document === undefined) return { rules: [], problems: [] }
    return { ...loaded(document), stamp: String(document.version) }
  }

  async *loadAll(): AsyncGenerator<readonly FoundRules[]> {
    const all = [...this.#documents.values()]
    for (let at = 0; at < all.length; at += PAGE) {
      await new Promise((resolve) => setTimeout(resolve, ANSWER_MS))
      yield all.slice(at, at + PAGE).map((document) => ({
        service: document.service_id,
        stamp: String(document.version),
        read: () => loaded(document),
      }))
    }
  }
}

function loaded(document: StoredDocument): LoadedRules {
  return { rules: parseRuleDocument(document), problems: [], version: document.version }
}
