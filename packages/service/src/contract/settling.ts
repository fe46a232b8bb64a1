import { create } from "@bufbuild/protobuf"
import { addressOf } from "../bounds/peers.ts"
import { mapInTurns } from "../bounds/turns.ts"
import type { CallContext, Handlers } from "../calls.ts"
import type { ServiceGuard, ServiceGuards } from "../deciding/service-guards.ts"
import { RateLimiter, RenewResponseSchema, SettleResponseSchema } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { requireTokenOf, type Tokens } from "../registering/tokens.ts"
import { Code, invalidArgument, StatusError, TokenError } from "../status-error.ts"
import type { ListBound } from "../wire/json-list.ts"
import { statusMessage } from "../wire/status-message.ts"
import { errorOf } from "./forward.ts"
import { translated } from "./register.ts"
import { type ReservationTexts, unsigned } from "./reservation-text.ts"
import { BESIDES_PERMITS, unitsOf } from "./units.ts"

/** Maximum number of settlements, and of reservations to renew, in a call. */
const MOST = 1_000
/** The lists of the calls that settle and renew. */
export const RESERVATION_LISTS: Readonly<Record<SettlingMethod, ListBound>> = {
  settle: { name: "settlements", most: MOST, mostCounted: 2 * MOST },
  renew: { name: "reservations", most: MOST, mostCounted: 2 * MOST },
}

/** How a settlement ended. */
export type SettlementEnd = "settled" | "repeated" | "late" | "invalid"

/** The dependencies of the calls that settle and renew. */
export interface SettlingParts {
  readonly guards: ServiceGuards
  readonly texts: ReservationTexts
  /** Tokens of the callers that may ask for decisions. */
  readonly decideTokens: Tokens
  /** Called for every settlement, unless the store or the rules are unavailable. */
  readonly onSettlement: (end: SettlementEnd) => void
  /** Called for each call with a token that is not valid for a reservation. */
  readonly onWrongToken: (path: string, peer: string) => void
}

type SettlingMethod = "settle" | "renew"

/** Creates the calls with which callers settle and renew reservations, also those of other instances. */
export function settling(parts: SettlingParts): Pick<Handlers<typeof RateLimiter>, SettlingMethod> {
  return {
    async settle({ settlements }, context) {
      const ends = await inPlace(parts, "settle", settlements, context, async (settlement) => {
        const used = unitsOf(settlement.used, "used", BESIDES_PERMITS)
        const { guard } = await find(settlement.reservation, parts, context)
        const text = unsigned(settlement.reservation)
        // A service that has no rules any more has nothing to correct.
        const end = await guard?.reservations.settle(text, { used, refund: settlement.refund })
        return end ?? "settled"
      })
      const results = ends.map((end) => {
        tell(end, parts)
        const result = end === "late" ? tooOld() : end
        return result instanceof Error ? { error: statusMessage(result) } : { settled: result === "settled" }
      })
      return create(SettleResponseSchema, { results })
    },
    async renew({ reservations }, context) {
      const renewals = await inPlace(parts, "renew", reservations, context, async (reservation) => {
        const { service, guard } = await find(reservation, parts, context)
        const renewed = await guard?.reservations.renew(unsigned(reservation))
        if (renewed === undefined) return { reservation }
        if (renewed === "late") throw tooOld()
        if (renewed === "repeated") throw new StatusError(Code.FAILED_PRECONDITION, SETTLED_BEFORE)
        const { text, renewWithinMs } = renewed
        return {
          reservation: parts.texts.signed(text, service),
          ...(renewWithinMs !== undefined && { renewWithinMs: BigInt(renewWithinMs) }),
        }
      })
      return create(RenewResponseSchema, {
        renewals: renewals.map((each) => (each instanceof Error ? { error: statusMessage(each) } : each)),
      })
    },
  }
}

const SETTLED_BEFORE = "The reservation was settled before, so its permits are given back."

function tooOld(): StatusError {
  const message = "The reservation is too old. What it took stays taken, and its permits have ended."
  return new StatusError(Code.FAILED_PRECONDITION, message)
}

/** Finds the service of a reservation, and its guard if it has rules. Rejects with StatusError. */
async function find(
  reservation: string,
  { texts, decideTokens, guards }: SettlingParts,
  { token }: CallContext,
): Promise<{ readonly service: string; readonly guard: ServiceGuard["guard"] | undefined }> {
  const service = texts.serviceOf(reservation)
  if (service === undefined) throw notAReservation()
  requireTokenOf(service, decideTokens, token)
  const found = await guards.of(service)
  return { service, guard: found?.guard }
}

function notAReservation(): StatusError {
  const description = "is not a reservation of this decision service; send the whole text without changes"
  return invalidArgument({ field: "reservation", description })
}

/**
 * Runs an action for each item of a list, all at the same time, and returns the results in this order. An error of one
 * item takes its place. Rejects with an error that is not a StatusError, because a fault of the service fails the whole
 * call.
 */
async function inPlace<Item, Result>(
  { onWrongToken }: SettlingParts,
  method: SettlingMethod,
  items: readonly Item[],
  { places, peer }: CallContext,
  act: (item: Item) => Promise<Result>,
): Promise<(Result | StatusError)[]> {
  const { name: field } = RESERVATION_LISTS[method]
  if (items.length > MOST)
    throw invalidArgument({
      field,
      description: `has ${items.length} ${field}; at most ${MOST} are accepted`,
    })
  if (items.length > 1) places.takeForEach(items.length)
  const attempts = await mapInTurns(items, (item) => translated(() => act(item)).catch(errorOf))
  const results = await Promise.all(attempts)
  const fault = results.find((each) => each instanceof Error && !(each instanceof StatusError))
  if (fault !== undefined) throw fault
  if (results.some((each) => each instanceof TokenError)) {
    onWrongToken(`/${RateLimiter.typeName}/${RateLimiter.method[method].name}`, addressOf(peer))
  }
  return results as (Result | StatusError)[]
}

/** Tells how a settlement ended. */
function tell(end: SettlementEnd | StatusError, { onSettlement }: SettlingParts): void {
  if (!(end instanceof StatusError)) onSettlement(end)
  else if (end.code !== Code.UNAVAILABLE) onSettlement("invalid")
}
