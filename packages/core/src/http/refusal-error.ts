import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import type { HeaderLine, RejectionAnswer } from "../ground/answer.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import { mustBe, requireValue } from "../ground/option-checks.ts"

/** The option of adapters that passes refusals to the app's error handler. */
export interface RefusalOptions {
  /**
   * Whether a refusal is passed to the app's error handler, as a {@link RefusalError}. The rate limit headers and
   * `Retry-After` are set before that. Default: false, so the adapter sends the response itself.
   */
  readonly throwOnRefusal?: boolean
}

/**
 * A refusal that is passed to the app's error handler, because of the option `throwOnRefusal`. The refusal is the
 * error that `limiter.enforce()` throws, with the response that the adapter would otherwise send.
 */
export class RefusalError extends RateLimitExceededError {
  /**
   * The status of the response: 429, 400 if a field is missing, 503 if the store fails, or the status that
   * `onRejected` returned.
   */
  readonly status: number
  /** Equal to `status`, for frameworks that read this member instead. */
  readonly statusCode: number
  /** Whether Koa sends the message to the client instead of logging it. True for a status below 500. */
  readonly expose: boolean
  /**
   * The response that is sent without `throwOnRefusal`. The headers of this response are already set, except the
   * headers that describe the body.
   */
  readonly rejection: RejectionAnswer

  /** Creates the error of a refused request. */
  constructor(decision: Decision, rejection: RejectionAnswer) {
    super(decision)
    this.status = rejection.status
    this.statusCode = rejection.status
    this.expose = rejection.status < 500
    this.rejection = rejection
  }

  /** The headers of the response that stay valid whatever body the error handler sends. */
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
  // Return any other value unchanged, because createGuard reports why it is invalid.
  if (!Object.hasOwn(Object(options), "throwOnRefusal")) return { throws: false, options }
  const { throwOnRefusal: throws = false, ...others } = options
  requireValue("throwOnRefusal", throws, checkBoolean)
  return { throws, options: others as Options }
}

const checkBoolean = mustBe("a boolean", "true or false", (value) => typeof value === "boolean")
