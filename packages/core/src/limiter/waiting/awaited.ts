import { type Ask, isHopeless } from "../../decision/rule-check.ts"
import type { Patience } from "./ticket.ts"

/** Those of the asks that take units under a rule that is waited for. */
export function awaitedOf(asks: readonly Ask[], patience: Patience): readonly Ask[] {
  return asks.filter((ask) => !ask.shadow && ask.cost > 0 && patience.waitsFor(ask))
}

/** Whether waiting makes no difference: there is nothing to wait for, or it is refused for ever. */
export function isAnsweredAtOnce(asks: readonly Ask[], awaited: readonly Ask[]): boolean {
  return awaited.length === 0 || asks.some((ask) => isHopeless(ask) && !ask.shadow)
}
