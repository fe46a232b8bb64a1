import type { Ask } from "../ask.ts"
import { Line } from "./line.ts"
import type { Patience, Ticket } from "./ticket.ts"

/** The lines in which somebody waits, by counter. */
export class Lines {
  readonly #lines = new Map<string, Line<Ticket>>()

  /** The line of the ask's counter, which is new where nobody waits for it. */
  of(ask: Ask): Line<Ticket> {
    const name = nameOf(ask)
    const line = this.#lines.get(name) ?? new Line(name)
    if (line.isEmpty) this.#lines.set(name, line)
    return line
  }

  /** Of asks, the one in whose line somebody sleeps who came earlier: until that one wakes there is nothing for others. */
  blocking(asks: readonly Ask[], number: number): Ask | undefined {
    return asks.find((ask) => {
      const first = this.#lines.get(nameOf(ask))?.first?.who
      return first?.step === "sleeping" && first.number < number
    })
  }

  forgetEmpty(line: Line<Ticket>): void {
    // Who left may have been forgotten with its line before, and others may stand in a new one.
    if (line.isEmpty && this.#lines.get(line.name) === line) this.#lines.delete(line.name)
  }

  /** Whether it is known already that who comes now waits in vain: too many wait there, or the first of them for too long. */
  isInVain(ask: Ask, { maxWaiting }: Patience, deadlineMs: number): boolean {
    const line = this.#lines.get(nameOf(ask))
    if (line === undefined) return false
    const first = line.first?.who
    return line.waiting >= maxWaiting || (first?.step === "sleeping" && first.untilMs > deadlineMs)
  }

  /** Milliseconds for which who comes to this counter now waits at least, 1 or more. */
  waitMs(ask: Ask, nowMs: number): number {
    const line = this.#lines.get(nameOf(ask))
    const first = line?.first?.who
    const [held] = line?.held ?? []
    const next = first?.step === "sleeping" ? first : held
    return next === undefined ? 1 : Math.max(1, Math.ceil(next.untilMs - nowMs))
  }
}

function nameOf({ policy, partition }: Ask): string {
  // All of a policy's counters have names of one length.
  return policy.counter + partition
}
