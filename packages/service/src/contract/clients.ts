import { create } from "@bufbuild/protobuf"
import { type Limiter, type RequestFacts, StoreUnavailableError } from "@sluice/core"
import type { CounterKey } from "@sluice/core/stores"
import type { ParsedRule, RuleBook } from "@sluice/rules"
import type { CallContext, Handlers } from "../calls.ts"
import type { AskedRequest } from "../deciding/asked-request.ts"
import type { ServiceGuard, ServiceGuards } from "../deciding/service-guards.ts"
import {
  BlockClientResponseSchema,
  GrantUnitsResponseSchema,
  type RateLimiter,
  ResetClientResponseSchema,
  ShowClientResponseSchema,
  UnblockClientResponseSchema,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import type { Audit, ClientChange } from "../registering/audit.ts"
import type { Tokens } from "../registering/tokens.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"
import { notRegistered, requireOwner, translated } from "./register.ts"
import { serviceName } from "./service-name.ts"

/** The dependencies of the operations on clients. */
export interface ClientsParts {
  readonly guards: ServiceGuards
  readonly book: RuleBook
  readonly tokens: Tokens
  /** Whether any caller may use these calls if no tokens are configured. */
  readonly isOpen: boolean
  readonly audit: Audit
  /** Returns the key of a counter in Redis. Absent if Redis does not store the counters. */
  readonly keyOf?: ((counter: CounterKey) => string) | undefined
}

type ClientMethod = "showClient" | "resetClient" | "blockClient" | "unblockClient" | "grantUnits"

/** A client, as a call names it. */
interface Named {
  readonly serviceId: number
  readonly service: string
  readonly rule: string
  readonly client: readonly string[]
}

/** A client of a rule, and the limiter that counts it. */
interface FoundClient {
  readonly limiter: Limiter<AskedRequest>
  readonly request: RequestFacts
  /** An array whose only element is the name of the rule. */
  readonly rules: readonly [string]
  readonly isShadow: boolean
}

/** Creates the calls with which an engineer inspects, resets, blocks and unblocks a client, and grants it units. */
export function clients(parts: ClientsParts): Pick<Handlers<typeof RateLimiter>, ClientMethod> {
  const changing = (
    named: Named,
    context: CallContext,
    change: Pick<ClientChange, "action" | "for" | "units">,
    make: (found: FoundClient) => Promise<void>,
  ): Promise<void> =>
    translated(async () => {
      const { service, found } = await find(parts, named, context)
      const { rule, client } = named
      const made: ClientChange = { ...change, service, rule, client, peer: context.peer }
      try {
        await make(found)
      } catch (failure) {
        // Report only this error, because any other error occurred before the call reached the store.
        if (failure instanceof StoreUnavailableError) parts.audit.clientChanged?.({ ...made, failure })
        throw failure
      }
      parts.audit.clientChanged?.(made)
    })
  return {
    showClient: (named, context) =>
      translated(async () => {
        const { found } = await find(parts, named, context)
        const { limiter, request, rules, isShadow: shadow } = found
        const { degraded, checks } = await limiter.peek(request, { rules })
        const [check] = checks
        if (check === undefined) return create(ShowClientResponseSchema, { allowedByList: true, shadow })
        const { limit, granted = 0, remaining = 0, refusal, retryAfterMs, resetAfterMs } = check
        const [explanation] = await limiter.explain(request, { rules })
        const counter = explanation?.counter
        return create(ShowClientResponseSchema, {
          limit: BigInt(limit),
          granted: BigInt(granted),
          remaining: BigInt(remaining),
          resetAfterMs: BigInt(resetAfterMs),
          degraded,
          shadow,
          ...(counter !== undefined && {
            partition: counter.partition,
            key: parts.keyOf?.(counter) ?? "",
          }),
          ...(refusal !== undefined && { refusal }),
          ...(refusal !== undefined &&
            Number.isFinite(retryAfterMs) && { retryAfterMs: BigInt(retryAfterMs) }),
        })
      }),
    async resetClient(named, context) {
      await changing(named, context, { action: "reset" }, ({ limiter, request, rules }) =>
        limiter.reset(request, { rules }),
      )
      return create(ResetClientResponseSchema)
    },
    async blockClient(named, context) {
      await changing(named, context, { action: "blocked", for: named.for }, async (found) => {
        const { limiter, request, rules } = found
        requireBlocking(found)
        // Reject a number without a unit. The core would read such a number as milliseconds, and an operator may mean
        // seconds.
        if (/^\s*\d+\s*$/.test(named.for)) {
          throw invalidArgument({
            field: "for",
            description: `${quoted(named.for)} has no unit; give one, such as "1 hour" or "15m"`,
          })
        }
        const { checks } = await limiter.peek(request, { rules })
        if (checks.length === 0) {
          throw invalidArgument({
            field: "client",
            description: "is on the allow list of the rule, so it cannot be blocked; change the rule",
          })
        }
        await limiter.block(request, { for: named.for, rules })
      })
      return create(BlockClientResponseSchema)
    },
    async unblockClient(named, context) {
      await changing(named, context, { action: "unblocked" }, async (found) => {
        requireBlocking(found)
        await found.limiter.unblock(found.request, { rules: found.rules })
      })
      return create(UnblockClientResponseSchema)
    },
    async grantUnits(named, context) {
      const units = Number(named.units)
      await changing(named, context, { action: "granted", units }, ({ limiter, request, rules }) =>
        limiter.grant(request, units, { rules }),
      )
      return create(GrantUnitsResponseSchema)
    },
  }
}

/** Throws StatusError for a shadow rule. */
function requireBlocking({ isShadow }: FoundClient): void {
  if (isShadow)
    throw invalidArgument({ field: "rule", description: "is a shadow rule, so it cannot block a client" })
}

/** Finds a client, if the caller may access it. Rejects with StatusError. */
async function find(
  parts: ClientsParts,
  named: Named,
  context: CallContext,
): Promise<{ readonly service: string; readonly found: FoundClient }> {
  const service = serviceName(named)
  requireOwner(parts, service, context)
  const { guard, rules } = await findService(parts, service)
  const rule = rules.find(({ name }) => name === named.rule)
  if (rule === undefined)
    throw noSuchRule(
      service,
      named.rule,
      rules.map(({ name }) => name),
    )
  const { limiter } = guard.guard
  const request = limiter.client(rule.name, named.client)
  return { service, found: { limiter, request, rules: [rule.name], isShadow: rule.shadow } }
}

/** Finds the guard and the rules of a service. Rejects with StatusError. */
export async function findService(
  { guards, book }: Pick<ClientsParts, "guards" | "book">,
  service: string,
): Promise<{ readonly guard: ServiceGuard; readonly rules: readonly ParsedRule[] }> {
  const guard = await guards.of(service)
  const rules = book.rulesOf(service)?.rules
  if (guard === undefined || rules === undefined) throw notRegistered(service)
  return { guard, rules }
}

export function noSuchRule(service: string, rule: string, names: readonly string[]): StatusError {
  const there = names.length === 0 ? "it has none" : `its rules are ${names.map(quoted).join(", ")}`
  return new StatusError(Code.NOT_FOUND, `Service ${quoted(service)} has no rule ${quoted(rule)}: ${there}.`)
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
