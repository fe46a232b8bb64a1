import { create } from "@bufbuild/protobuf"
import {
  InvalidOptionError,
  InvalidRuleError,
  type Problem,
  type RegisteredRules,
  type RuleBook,
  RuleConflictError,
  type RuleRegistry,
  RuleSourceError,
  type StorableRule,
  StoreUnavailableError,
} from "@sluice/core"
import type { CallContext, Handlers } from "../calls.ts"
import {
  GetServiceResponseSchema,
  type RateLimiter,
  type RegisterServiceRequest,
  RegisterServiceResponseSchema,
  RemoveServiceResponseSchema,
  type RuleProblem,
  RuleProblem_Effect,
  RuleProblemSchema,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import type { Audit, Change } from "../registering/audit.ts"
import { requireTokenOf, type Tokens } from "../registering/tokens.ts"
import { Code, type FieldViolation, invalidArgument, StatusError } from "../status-error.ts"
import { ruleMessages, rulesOf, sayTheSame } from "./rule-messages.ts"
import { serviceName } from "./service-name.ts"

/** What registering needs. */
export interface RegisteringParts {
  /** Undefined where rules are registered elsewhere. */
  readonly registry: RuleRegistry | undefined
  readonly book: RuleBook
  readonly tokens: Tokens
  /** Whether anybody may register where there are no tokens. */
  readonly isOpen: boolean
  readonly audit: Audit
}

type RegistryMethod = "registerService" | "getService" | "removeService"

/** The calls by which service owners read and change their rules. */
export function registering(parts: RegisteringParts): Pick<Handlers<typeof RateLimiter>, RegistryMethod> {
  const { book, audit } = parts
  return {
    async registerService(request, context) {
      const service = serviceName(request)
      const registry = admit(parts, service, context)
      const expected = expectedVersion(request)
      return translated(async () => {
        const rules = await givenRules(request)
        const before = await registry.get(service)
        const isAgain = typeof expected !== "number" && (await isSame(service, rules, before))
        const registered = isAgain
          ? (before as RegisteredRules)
          : await audited(audit, { service, peer: context.peer, before, after: { rules } }, () => {
              const version = expected ?? seenBefore(request, before)
              requireVersion(service, version, before)
              return registry.register(service, rules, { version })
            })
        await inForce(book, service, audit)
        return create(RegisterServiceResponseSchema, {
          status: { code: Code.OK },
          version: BigInt(registered.version),
        })
      })
    },
    async getService(request, context) {
      const service = serviceName(request)
      const registry = admit(parts, service, context)
      return translated(async () => {
        const registered = await registry.get(service)
        if (registered === undefined) throw notRegistered(service)
        return create(GetServiceResponseSchema, {
          version: BigInt(registered.version),
          rules: await ruleMessages(registered),
          problems: registered.problems.map(problemText),
          ruleProblems: ruleProblems(registered, book),
        })
      })
    },
    async removeService(request, context) {
      const service = serviceName(request)
      const registry = admit(parts, service, context)
      const version = expectedVersion(request)
      if (version === undefined) {
        throw invalidArgument({ field: "version", description: "is missing, and so is overwrite" })
      }
      return translated(async () => {
        const before = await registry.get(service)
        const change = { service, peer: context.peer, before, after: undefined }
        const removed = await audited(audit, change, () => registry.remove(service, { version }))
        await inForce(book, service, audit)
        return create(RemoveServiceResponseSchema, { removed })
      })
    },
  }
}

/** Returns the problems of what is stored, with what they keep out of force on this instance. */
function ruleProblems(registered: RegisteredRules, book: RuleBook): RuleProblem[] {
  if (registered.problems.length === 0) return []
  const effect = isRejected(registered, book) ? RuleProblem_Effect.EDITION : RuleProblem_Effect.RULE
  return registered.problems.map((problem) =>
    create(RuleProblemSchema, {
      path: problem.path,
      description: descriptionOf(problem),
      ...(problem.rule !== undefined && { rule: problem.rule }),
      effect,
    }),
  )
}

/** Whether the book has rejected what is stored as a whole, or will when it loads it. */
function isRejected({ service, version, rules }: RegisteredRules, book: RuleBook): boolean {
  const edition = book.rulesOf(service)
  if (edition === undefined) return rules.length === 0
  if (book.statusOf(service).isRejected) return true
  const isThisOne = edition.problems.length > 0 && (edition.version ?? 0) === version
  return !isThisOne
}

/** Throws StatusError unless the caller may change what belongs to the service. */
export function requireOwner(
  { tokens, isOpen }: Pick<RegisteringParts, "tokens" | "isOpen">,
  service: string,
  { token }: Pick<CallContext, "token">,
): void {
  if (tokens.isEmpty && !isOpen) {
    throw new StatusError(
      Code.PERMISSION_DENIED,
      "Nobody may change rules or clients here, because no tokens are configured.",
    )
  }
  requireTokenOf(service, tokens, token)
}

/** Returns the registry, if the caller may use it. */
function admit(parts: RegisteringParts, service: string, context: CallContext): RuleRegistry {
  requireOwner(parts, service, context)
  const { registry } = parts
  if (registry !== undefined) return registry
  throw new StatusError(
    Code.FAILED_PRECONDITION,
    "The rules are kept elsewhere, such as in a file: they can be neither changed nor listed here.",
  )
}

interface Versioned {
  readonly version?: bigint | undefined
  readonly overwrite: boolean
}

function expectedVersion({ version, overwrite }: Versioned): number | "any" | undefined {
  if (version !== undefined && version > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw invalidArgument({ field: "version", description: `is greater than ${Number.MAX_SAFE_INTEGER}` })
  }
  if (!overwrite) return version === undefined ? undefined : Number(version)
  if (version === undefined) return "any"
  throw invalidArgument({ field: "overwrite", description: "is given together with version" })
}

/** Rules of a service: each costs memory, and time when rules are loaded. */
const MOST_RULES = 1_000

async function givenRules({ rule, rules }: RegisterServiceRequest): Promise<StorableRule[]> {
  if (rules.length > MOST_RULES) {
    const description = `has ${rules.length} rules; ${MOST_RULES} are accepted`
    throw invalidArgument({ field: "rules", description })
  }
  if (rule === undefined) return rulesOf(rules, "rules")
  if (rules.length === 0) return rulesOf([rule], "rule")
  throw invalidArgument({ field: "rule", description: "is given together with rules" })
}

/**
 * A client of the first contract knows one rule and no versions. What it may have written itself it replaces; a list is
 * another's, and a conflict.
 */
function seenBefore(
  { rule }: RegisterServiceRequest,
  before: RegisteredRules | undefined,
): number | undefined {
  const isOne = before !== undefined && before.rules.length <= 1 && before.problems.length === 0
  return rule !== undefined && isOne ? before.version : undefined
}

/** Throws the conflict that the registry would find, before a long list of rules is written in vain. */
function requireVersion(
  service: string,
  version: number | "any" | undefined,
  before: RegisteredRules | undefined,
): void {
  if (before === undefined || version === "any" || version === before.version) return
  throw conflict({ service, found: before })
}

/** What is there already and says the same is what was wanted: who registers at each start need not know a version. */
async function isSame(
  service: string,
  rules: readonly StorableRule[],
  before: RegisteredRules | undefined,
): Promise<boolean> {
  return before?.problems.length === 0 && sayTheSame(service, rules, before.rules)
}

/** Makes a change and writes it down, also where the registry has failed: it may have been made then. */
async function audited<Done extends RegisteredRules | boolean>(
  audit: Audit,
  change: Change,
  make: () => Promise<Done>,
): Promise<Done> {
  let done: Done
  try {
    done = await make()
  } catch (failure) {
    if (failure instanceof RuleSourceError) await audit.changed({ ...change, failure })
    throw failure
  }
  if (done !== false) await audit.changed(typeof done === "object" ? { ...change, after: done } : change)
  return done
}

/** Elsewhere they are in force when the rules are polled; here they are at once. */
async function inForce(book: RuleBook, service: string, audit: Audit): Promise<void> {
  try {
    await book.refresh({ service })
  } catch (error) {
    audit.notInForce(service, error)
  }
}

export function notRegistered(service: string): StatusError {
  return new StatusError(Code.NOT_FOUND, `Service ${JSON.stringify(service)} has no rules.`)
}

/** Runs an action. Rejects with errors of the core as StatusError. */
export async function translated<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof InvalidRuleError || error instanceof InvalidOptionError) {
      throw invalidArgument(...(error.problems.map(violation) as [FieldViolation, ...FieldViolation[]]))
    }
    if (error instanceof RuleConflictError) throw conflict(error)
    if (error instanceof RuleSourceError || error instanceof StoreUnavailableError)
      throw new StatusError(Code.UNAVAILABLE, error.message)
    throw error
  }
}

function conflict({ service, found }: Pick<RuleConflictError, "service" | "found">): StatusError {
  const told =
    found === undefined
      ? "nothing is registered: register it without a version, or overwrite"
      : `version ${found.version} is registered: read it, and give its version, or overwrite it`
  const message = `For service ${JSON.stringify(service)} ${told}.`
  return new StatusError(Code.ABORTED, message)
}

function violation(problem: Problem): FieldViolation {
  return { field: problem.path, description: descriptionOf(problem) }
}

function problemText(problem: Problem): string {
  return `${problem.path}: ${descriptionOf(problem)}`
}

function descriptionOf({ message, accepted }: Problem): string {
  return accepted === undefined ? message : `${message}; accepted: ${accepted}`
}
