import type { Decision } from "@sluice/core"
import type { ServiceGuard } from "../deciding/service-guards.ts"
import type { ShouldForwardRequestResponse } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { type ReservationTexts, unsigned } from "./reservation-text.ts"
import { NO_UNITS } from "./units.ts"

/** Reserves what forwarded requests took. */
export class ServiceReservations {
  readonly #texts: ReservationTexts
  readonly #lifetimeMs: number

  /** Each text is accepted for `lifetimeMs`. */
  constructor(texts: ReservationTexts, lifetimeMs: number) {
    this.#texts = texts
    this.#lifetimeMs = lifetimeMs
  }

  /** Moves what an admitted decision took into a reservation in the response. */
  reserve({ guard, service }: ServiceGuard, decision: Decision, answer: ShouldForwardRequestResponse): void {
    const { text, renewWithinMs } = guard.reservations.reserve(decision, this.#lifetimeMs)
    answer.reservation = this.#texts.signed(text, service)
    if (renewWithinMs !== undefined) answer.renewWithinMs = BigInt(renewWithinMs)
  }
}

/** Refunds what a request reserved, because its caller does not receive the reservation. */
export function refundReserved({ guard }: ServiceGuard, reservation: string): void {
  const everything = { used: NO_UNITS, refund: true }
  // If the store is unavailable, the units stay taken and the permits end, so no limit is exceeded.
  guard.reservations.settle(unsigned(reservation), everything).catch(() => undefined)
}
