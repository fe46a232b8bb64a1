import type { Alarm } from "./alarm.ts"
import type { Departures } from "./departures.ts"
import { Heap } from "./heap.ts"
import type { Line } from "./line.ts"
import type { Lines } from "./lines.ts"
import type { Ticket } from "./ticket.ts"
import type { Turns } from "./turns.ts"

interface FrontParts {
  readonly lines: Lines
  readonly turns: Turns
  readonly alarm: Alarm
  readonly departures: Departures
  /** Called when it is time to serve a line. */
  serve(): void
}

/** Finds the request whose turn it is, and refuses requests that cannot wait until their turn. */
export class Front {
  readonly #parts: FrontParts
  /** The first request of each ready line, in order of arrival. */
  readonly #ready = new Heap<Ticket>(({ number }) => number)

  constructor(parts: FrontParts) {
    this.#parts = parts
  }

  /** Returns the earliest request whose turn has come. First processes the lines that have changed. */
  next(): Ticket | undefined {
    const { lines, turns } = this.#parts
    for (let line = lines.nextDue(); line !== undefined; line = lines.nextDue()) {
      turns.flush(line)
      if (line.isReady) this.#ready.add(line.first as Ticket)
      if (line.untilMs !== undefined) {
        this.#refuseImpatient(line, line.untilMs)
        for (const ticket of line.crowdedOut()) this.#parts.departures.refuseBehind(ticket)
      }
      this.#setTimer(line)
      lines.forget(line)
    }
    for (let { first } = this.#ready; first !== undefined; { first } = this.#ready) {
      this.#ready.delete(first)
      const { line } = first
      if (line?.isReady && line.first === first) return first
    }
    return undefined
  }

  /** Refuses the requests whose deadline is before the given time. */
  #refuseImpatient({ impatient }: Line<Ticket>, beforeMs: number): void {
    for (
      let { first } = impatient;
      first !== undefined && first.deadlineMs < beforeMs;
      { first } = impatient
    ) {
      this.#parts.departures.refuseBehind(first)
    }
  }

  /**
   * Sets the timer of a line. It fires when the line wakes or, while the store is asked, when a request's deadline
   * passes.
   */
  #setTimer(line: Line<Ticket>): void {
    const { untilMs, impatient, asking, timer } = line
    // A request whose deadline is right now may still have its turn now.
    const atMs = untilMs ?? (asking > 0 && impatient.first ? impatient.first.deadlineMs + 1 : undefined)
    if (atMs === timer?.atMs) return
    timer?.stop()
    line.timer = undefined
    if (atMs === undefined) return
    const goOff = () => {
      line.timer = undefined
      if (line.untilMs === undefined) this.#refuseImpatient(line, this.#parts.alarm.now())
      line.untilMs = undefined
      this.#parts.lines.makeDue(line)
      this.#parts.serve()
    }
    const fail = (error: unknown) => {
      line.timer = undefined
      const waiting = line.untilMs === undefined ? impatient.first : line.first
      if (waiting !== undefined) this.#parts.departures.giveUp(waiting, error)
    }
    line.timer = { atMs, stop: this.#parts.alarm.at(atMs, goOff, fail) }
  }
}
