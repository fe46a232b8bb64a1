import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import type { HeaderLine, RejectionAnswer } from "../ground/answer.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import { mustBe, requireValue } from "../ground/option-checks.ts"

/** The option of adapters that passes refusals to the app's error handler. */
export interface RefusalOptions {
  /**
   * Whether a refusal is passed to the app's error handler, as a {@link RefusalError}. The rate limit headers and
   * `Retry-After` are set by then. Default: false, the adapter sends the response itself.
   */
  readonly throwOnRefusal?: boolean
}

/**
 * A refusal that is passed to the app's error handler, because of the option `throwOnRefusal`. The refusal is the error
 * of `limiter.enforce()` with the response that would be sent otherwise.
 */
export class RefusalError extends RateLimitExceededError {
  /**
   * The status of the response: 429, or 400 if a field is missing, or 503 if the store fails; or that of `onRejected`.
   */
  readonly status: number
  /** The same as `status`, because some frameworks read this member. */
  readonly statusCode: number
  /** Whether Koa sends the message to the client, and does not log it: true for a status below 500. */
  readonly expose: boolean
  /** The response that is sent without `throwOnRefusal`. Its headers are already set, except those of the body. */
  readonly rejection: RejectionAnswer

  /** Creates the error of a refused request. */
  constructor(decision: Decision, rejection: RejectionAnswer) {
    super(decision)
    this.status = rejection.status
    this.statusCode = rejection.status
    this.expose = rejection.status < 500
    this.rejection = rejection
  }

  /** The headers of the response that hold for any body of the error handler. */
  get headerLines(): readonly HeaderLine[] {
    return this.rejection.headers.filter(([name]) => !/^content-(type|length)$/i.test(name))
  }
}

/**
 * Separates the option `throwOnRefusal` from the other options.
 * @throws {@link InvalidOptionError} if it is not a boolean
 */
export function readRefusalOption<Options>(options: Options & RefusalOptions): {
  /** True if a refusal is passed to the app's error handler. */
  readonly throws: boolean
  /** All other options. */
  readonly options: Options
} {
  // Pass on anything else as it is, because createGuard reports what is wrong with it.
  if (!Object.hasOwn(Object(options), "throwOnRefusal")) return { throws: false, options }
  const { throwOnRefusal: throws = false, ...others } = options
  requireValue("throwOnRefusal", throws, checkBoolean)
  return { throws, options: others as Options }
}

const checkBoolean = mustBe("a boolean", "true or false", (value) => typeof value === "boolean")
