import { timingSafeEqual } from "node:crypto"
import type { Tokens } from "../registering/tokens.ts"

/** Separates the text of the core from its signature. */
const SEPARATOR = "."

/**
 * Signs the texts of reservations, so that a caller cannot write a text that refunds what nobody took. The token that
 * registers the rules of a service signs, because it also resets counters. Without it, the token for decisions signs.
 * So all instances with the same tokens accept the same texts. Without tokens, texts have no signature.
 */
export class ReservationTexts {
  readonly #tokens: Tokens
  readonly #decideTokens: Tokens

  constructor(tokens: Tokens, decideTokens: Tokens) {
    this.#tokens = tokens
    this.#decideTokens = decideTokens
  }

  /** Returns the text with its signature. */
  signed(text: string, service: string): string {
    const signature = this.#tokens.sign(text, service) ?? this.#decideTokens.sign(text, service)
    return signature === undefined ? text : `${text}${SEPARATOR}${signature}`
  }

  /** Returns the service of a signed text. Undefined if the text is not a reservation, or was changed. */
  serviceOf(signed: string): string | undefined {
    const text = unsigned(signed)
    const service = serviceIn(text)
    if (service === undefined) return undefined
    const [given, expected] = [Buffer.from(signed), Buffer.from(this.signed(text, service))]
    return given.length === expected.length && timingSafeEqual(given, expected) ? service : undefined
  }
}

/** Returns the text without its signature. */
export function unsigned(signed: string): string {
  return signed.split(SEPARATOR, 1)[0] as string
}

/** Reads the service that a text names. The core checks the rest of the text. */
function serviceIn(text: string): string | undefined {
  try {
    const [, service] = JSON.parse(Buffer.from(text, "base64url").toString())
    return typeof service === "string" ? service : undefined
  } catch {
    return undefined
  }
}
