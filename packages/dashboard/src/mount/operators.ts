import { createHash, timingSafeEqual } from "node:crypto"
import type { Clock, Limiter } from "@sluice/core"
import { type Awaitable, Incident, type Warner } from "@sluice/core/kit"
import type { FoundCounters } from "../page/found-counter.ts"
import { resultOf, type VisitorRole } from "./access.ts"
import { pageLimiter, tooMany } from "./pace.ts"
import { CallRefused, type Visit } from "./visit.ts"

/** The token of operators, or a function that decides whether a token is valid for a service. */
export type TokenOption = string | ((token: string, service: string) => Awaitable<boolean>)

/** The header in which the page sends a token. */
const TOKEN_HEADER = "x-sluice-token"
const GUESSED =
  "Somebody has sent 10 wrong tokens to the dashboard within a minute. Until the minute has passed, all tokens are refused with 429. " +
  "If this was not an operator, find out which visitor of the page it was."

/** Decides which visitors may change clients. */
export class Operators {
  readonly #token: TokenOption | undefined
  readonly #warner: Warner
  /** Counts the wrong tokens of all visitors together, because one visitor may use many addresses. */
  readonly #guesses: Limiter
  /** Logs at most one line a minute. */
  readonly #guessing: Incident

  constructor(token: TokenOption | undefined, clock: Clock, warner: Warner) {
    this.#token = token
    this.#warner = warner
    this.#guesses = pageLimiter([{ name: "tokens", field: "service", limit: 10, window: "1 minute" }], clock)
    this.#guessing = new Incident(warner, 60_000, clock, false)
  }

  /** Returns whether the visitor is an operator, can become one by a token, or cannot. */
  status(role: VisitorRole): FoundCounters["operator"] {
    if (role === "operator") return "yes"
    return this.#token === undefined ? "no" : "token"
  }

  /** Rejects with {@link CallRefused} unless the visitor may change clients of the service. */
  async require({ headers }: Visit, role: VisitorRole, service: string): Promise<void> {
    if (role === "operator") return
    if (this.#token === undefined)
      throw new CallRefused(
        403,
        'Nobody may change clients here. Set the option token, or let authorize return "operator".',
      )
    const given = headers[TOKEN_HEADER]
    if (typeof given !== "string")
      throw new CallRefused(403, "Only an operator may change clients. Enter the token.")
    // Take the unit before the comparison. Otherwise requests at the same time would all be compared.
    const guess = await this.#guesses.decide({})
    if (!guess.allowed) {
      this.#guessing.add({ level: "warn", code: "SLUICE_DASHBOARD_GUESSED", message: GUESSED })
      throw tooMany("wrong tokens", guess)
    }
    if (!(await this.#isValid(given, service)))
      throw new CallRefused(403, `The token is not valid for ${service}.`)
    await this.#guesses.refund(guess)
  }

  async #isValid(given: string, service: string): Promise<boolean> {
    const token = this.#token
    if (typeof token === "string") return timingSafeEqual(digest(token), digest(given))
    return (await resultOf("token", () => token?.(given, service), [true], this.#warner)) === true
  }
}

/** Hashes have the same length, which the comparison needs. */
function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest()
}
