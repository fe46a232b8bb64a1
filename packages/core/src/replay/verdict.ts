import { decidedWithoutCounters } from "../decision/decider.ts"
import type { Decision } from "../decision/decision.ts"
import { explainAnswer, storeChecksOf } from "../decision/explain-answer.ts"
import type { RuleCheck } from "../decision/rule-check.ts"
import type { ClientAddressReader, RequestFacts } from "../request/request.ts"
import type { MemoryStore } from "../stores/memory/memory-store.ts"
import type { StoreResult } from "../stores/store.ts"
import type { ReplayVerdict } from "./replay.ts"

const NONE: readonly string[] = []

/** The verdict on the latest request. The full decision is built only if it is read. */
export class Verdict implements ReplayVerdict {
  allowed = true
  refusedBy: readonly string[] = NONE
  shadowedBy: readonly string[] = NONE
  delayMs = 0
  checks: readonly RuleCheck[] = []
  client: string | undefined
  readonly #maker: { readonly store: MemoryStore }
  readonly #addressOf: ClientAddressReader
  #request: RequestFacts = {}
  #storeChecks: readonly RuleCheck[] = []
  #answer: StoreResult | undefined
  #decision: Decision | undefined

  constructor(store: MemoryStore, addressOf: ClientAddressReader) {
    this.#maker = { store }
    this.#addressOf = addressOf
  }

  /** Decides a request by its checks, and counts the request. */
  on(request: RequestFacts, checks: readonly RuleCheck[], client: string | undefined): this {
    this.#request = request
    this.checks = checks
    this.client = client
    this.#decision = decidedWithoutCounters(checks)
    if (this.#decision !== undefined) return this.#read(this.#decision)
    this.#storeChecks = storeChecksOf(checks)
    this.#answer = this.#maker.store.take(this.#storeChecks)
    if (!this.#answer.granted || checks.some(needsDecision)) return this.#read(this.decision())
    this.allowed = true
    this.refusedBy = NONE
    this.shadowedBy = NONE
    this.delayMs = 0
    return this
  }

  address(): string | undefined {
    return this.#addressOf(this.#request)
  }

  decision(): Decision {
    this.#decision ??= explainAnswer(
      this.#answer as StoreResult,
      this.checks,
      this.#storeChecks,
      false,
      this.#maker,
      undefined,
    )
    return this.#decision
  }

  #read({ allowed, checks, shadowed, delayMs }: Decision): this {
    this.allowed = allowed
    this.refusedBy = allowed
      ? NONE
      : checks.flatMap((check) => (check.allowed || check.shadow ? [] : check.policy))
    this.shadowedBy = shadowed
    this.delayMs = delayMs
    return this
  }
}

/**
 * True if the outcome of the check requires the full decision. A shadow rule may have refused the request, and a
 * leaky bucket may delay it.
 */
function needsDecision({ shadow, policy }: RuleCheck): boolean {
  return shadow || policy.algorithm === "leaky-bucket"
}
