import { create } from "@bufbuild/protobuf"
import {
  InvalidOptionError,
  InvalidRuleError,
  type Problem,
  RuleSourceError,
  StoreUnavailableError,
} from "@sluice/core"
import {
  type RegisteredRules,
  type RuleBook,
  RuleConflictError,
  type RuleRegistry,
  type StorableRule,
} from "@sluice/rules"
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
import { isSameMetadata, metadataMessage, metadataOf } from "./service-metadata.ts"
import { serviceName } from "./service-name.ts"

/** The dependencies of the registration calls. */
export interface RegisteringParts {
  /** Undefined if rules cannot be registered here, for example because they are read from a file. */
  readonly registry: RuleRegistry | undefined
  readonly book: RuleBook
  readonly tokens: Tokens
  /** Whether any caller may register rules if no tokens are configured. */
  readonly isOpen: boolean
  readonly audit: Audit
}

type RegistryMethod = "registerService" | "getService" | "removeService"

/** Creates the handlers that let service owners read and change their rules. */
export function registering(parts: RegisteringParts): Pick<Handlers<typeof RateLimiter>, RegistryMethod> {
  const { book, audit } = parts
  return {
    async registerService(request, context) {
      const service = serviceName(request)
      const registry = admit(parts, service, context)
      const expected = expectedVersion(request)
      return translated(async () => {
        const rules = await givenRules(request)
        const metadata = metadataOf(request.metadata)
        const before = await registry.get(service)
        const after = { rules, ...(metadata !== undefined && { metadata }) }
        const isAgain =
          typeof expected !== "number" &&
          isSameMetadata(metadata, before?.metadata) &&
          (await isSame(service, rules, before))
        const registered = isAgain
          ? (before as RegisteredRules)
          : await audited(audit, { service, peer: context.peer, before, after }, () => {
              const version = expected ?? seenBefore(request, before)
              requireVersion(service, version, before)
              return registry.register(service, rules, { version, metadata })
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
          ...(registered.metadata !== undefined && { metadata: metadataMessage(registered.metadata) }),
        })
      })
    },
    async removeService(request, context) {
      const service = serviceName(request)
      const registry = admit(parts, service, context)
      const version = expectedVersion(request)
      if (version === undefined) {
        throw invalidArgument({ field: "version", description: "is missing; give version or overwrite" })
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

/**
 * Returns the problems of the stored rules, and whether each problem disables one rule or all rules on this instance.
 */
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

/** Whether the book has rejected the stored rules as a whole, or will reject them when it loads them. */
function isRejected({ service, version, rules }: RegisteredRules, book: RuleBook): boolean {
  const edition = book.rulesOf(service)
  if (edition === undefined) return rules.length === 0
  if (book.statusOf(service).isRejected) return true
  const isThisOne = edition.problems.length > 0 && (edition.version ?? 0) === version
  return !isThisOne
}

/** Throws StatusError unless the caller may change the rules and clients of the service. */
export function requireOwner(
  access: Pick<RegisteringParts, "tokens" | "isOpen">,
  service: string,
  { token }: Pick<CallContext, "token">,
): void {
  requireAccess(access)
  requireTokenOf(service, access.tokens, token)
}

/** Throws StatusError if no caller may change rules and clients here. */
export function requireAccess({ tokens, isOpen }: Pick<RegisteringParts, "tokens" | "isOpen">): void {
  if (tokens.isEmpty && !isOpen) {
    throw new StatusError(
      Code.PERMISSION_DENIED,
      "Rules and clients cannot be changed here, because no tokens are configured. Set SLUICE_TOKENS.",
    )
  }
}

/** Returns the registry. Throws StatusError if the caller may not use the registry, or if there is no registry. */
function admit(parts: RegisteringParts, service: string, context: CallContext): RuleRegistry {
  requireOwner(parts, service, context)
  const { registry } = parts
  if (registry !== undefined) return registry
  throw new StatusError(
    Code.FAILED_PRECONDITION,
    "Rules cannot be changed or listed here, because they are stored elsewhere, such as in a file. Change them there.",
  )
}

interface Versioned {
  readonly version?: bigint | undefined
  readonly overwrite: boolean
}

function expectedVersion({ version, overwrite }: Versioned): number | "any" | undefined {
  if (version !== undefined && version > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw invalidArgument({
      field: "version",
      description: `${version} is too large; it must be below 2^53`,
    })
  }
  if (!overwrite) return version === undefined ? undefined : Number(version)
  if (version === undefined) return "any"
  throw invalidArgument({
    field: "overwrite",
    description: "is given together with version; give only one of them",
  })
}

/** Maximum number of rules of a service, because each rule costs memory and time to load. */
export const MOST_RULES = 1_000

async function givenRules({ rule, rules }: RegisterServiceRequest): Promise<StorableRule[]> {
  if (rules.length > MOST_RULES) {
    const description = `has ${rules.length} rules; at most ${MOST_RULES} are accepted`
    throw invalidArgument({ field: "rules", description })
  }
  if (rule === undefined) return rulesOf(rules, "rules")
  if (rules.length === 0) return rulesOf([rule], "rule")
  throw invalidArgument({ field: "rule", description: "is given together with rules; give only one of them" })
}

/**
 * Returns the version that a client of the first contract replaces. Such a client sends one rule and no version. The
 * client may replace a single valid rule, because the client may have registered that rule itself. A list of rules
 * must come from another client, so replacing it is a conflict.
 */
function seenBefore(
  { rule }: RegisterServiceRequest,
  before: RegisteredRules | undefined,
): number | undefined {
  const isOne = before !== undefined && before.rules.length <= 1 && before.problems.length === 0
  return rule !== undefined && isOne ? before.version : undefined
}

/**
 * Throws the conflict that the registry would report, so that no long list of rules is sent to the registry without
 * effect.
 */
function requireVersion(
  service: string,
  version: number | "any" | undefined,
  before: RegisteredRules | undefined,
): void {
  if (before === undefined || version === "any" || version === before.version) return
  throw conflict({ service, found: before })
}

/**
 * True if the same rules are already registered without problems. A service that registers its rules at every start
 * therefore needs no version.
 */
async function isSame(
  service: string,
  rules: readonly StorableRule[],
  before: RegisteredRules | undefined,
): Promise<boolean> {
  return before?.problems.length === 0 && sayTheSame(service, rules, before.rules)
}

/**
 * Makes a change and records it in the audit. A failure of the registry is recorded too, because the change may have
 * been made.
 */
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

/** Loads the changed rules on this instance immediately. Other instances load changed rules when they poll. */
async function inForce(book: RuleBook, service: string, audit: Audit): Promise<void> {
  try {
    await book.refresh({ service })
  } catch (error) {
    audit.notInForce(service, error)
  }
}

export function notRegistered(service: string): StatusError {
  const message = `Service ${JSON.stringify(service)} has no rules; check its name, or register rules for it.`
  return new StatusError(Code.NOT_FOUND, message)
}

/** Runs an action. Converts errors of the core to StatusError. */
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
      ? "has no registered rules: register them without a version, or set overwrite"
      : `has version ${found.version}: read it and send that version, or set overwrite`
  const message = `Service ${JSON.stringify(service)} ${told}.`
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
