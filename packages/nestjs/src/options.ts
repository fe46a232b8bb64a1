import type { OnRejected } from "@sluice/core"
import type { GuardOptions, InFlightRule, RateRule, ServerRequest } from "@sluice/core/adapters"

/** The members that the requests of Express and Fastify have in common. */
export interface NestRequest extends ServerRequest {
  /** The user, if a guard of the app has stored one here, as Passport does. */
  readonly user?: unknown
}

/**
 * Limiter options, or a limiter to share. The options may lack a rule if only some handlers have one. For the type of
 * the platform's own request, annotate it: `skip: (request: Request) => …`.
 */
export type RateLimitModuleOptions<Request extends object = NestRequest> = GuardOptions<Request>

/** A rule of `@RateLimit`. The rule's name defaults to the class and method: "LoginController.login". */
export type HandlerRateLimit<Request extends object = NestRequest> = (
  | Omit<RateRule<Request>, "field">
  | Omit<InFlightRule<Request>, "field">
) & {
  /** The fields whose values identify a counter. Default: "ip". */
  readonly field?: string | readonly string[] | undefined
  /** The group of the handler. Handlers of a group share one counter and need the same rule. */
  readonly group?: string
  /** Returns the response to a refused request. Default: the `onRejected` of the module. */
  readonly onRejected?: OnRejected<Request> | undefined
}
