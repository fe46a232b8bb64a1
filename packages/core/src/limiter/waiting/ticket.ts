import type { Decision, PolicyCheck, Refusal } from "../../decision/decision.ts"
import { type Ask, asksNow } from "../../decision/rule-check.ts"
import type { Line } from "./line.ts"
import type { Place } from "./queue.ts"
import { Tried } from "./tried.ts"

/** Why a wait ends early. Without a reason, each abort would make an error with a stack, which takes longer than all else here. */
const NOT_NEEDED = new Error("The wait is not needed.")

/** Refusals that end with time. */
const ENDS: ReadonlySet<Refusal> = new Set(["quota", "penalty", "blocked"])

/** How long somebody waits, and for what. */
export interface Patience {
  /** Milliseconds from now, Infinity for as long as it takes. */
  readonly maxWaitMs: number
  /** How many may wait for a counter, this one included. */
  readonly maxWaiting: number
  /** False if requests that a leaky bucket holds do not count as waiting, because its room bounds them. Default: true. */
  readonly countsHeld?: boolean
  readonly signal?: AbortSignal | undefined
  /**
   * Told when it turns out that it has to wait: `leave` ends that with a reason. What it yields is called when the waiting
   * is over.
   */
  onWait?(leave: (reason: unknown) => void): () => void
  /** Whether to wait for this rule: one that refuses is else an answer, and its delay is not waited. */
  waitsFor(ask: Ask): boolean
  /**
   * Whether to stand in line when a rule that it waits for refuses. If not, only the delay of that rule is waited. Default: it stands in
   * line for each of them.
   */
  linesUpFor?(ask: Ask): boolean
  /** What it asks under the rules that are in force by now; absent where they never change. */
  asksAnew?(): readonly Ask[]
  /** Told that it goes by that from now on. */
  onAnew?(): void
}

/**
 * idle: its turn has not come · asking: the store · vain: asking, but one ahead was refused, so it must not be granted ·
 * granted: those ahead have not been answered yet · sleeping: refused, until it asks again · held: granted, until it is
 * its turn to go on · leaving: out of line, and its last answer is on its way · done: answered, or gone
 */
export type Step = "idle" | "asking" | "vain" | "granted" | "sleeping" | "held" | "leaving" | "done"

type Outcome = { readonly decision: Decision } | { readonly error: unknown }

interface Settle {
  resolve(decision: Decision): void
  reject(error: unknown): void
}

/** Where one is held that has been granted what it wanted, until it is its turn to go on. */
export interface Slot {
  readonly line: Line<Ticket>
  readonly place: Place<Ticket>
  /** When it is its turn here, by the store's time. */
  readonly turnMs: number
  /** What gives back the units of those with earlier turns who have left since: when this one leaves too, and not before. */
  readonly returns: (() => void)[]
}

/** How many may wait for the counter of an ask: none where nobody stands in line for its rule. */
export function mostWaiting(patience: Patience, ask: Ask): number {
  return linesUp(patience, ask) ? patience.maxWaiting : 0
}

/** How many wait in a line, as far as this patience counts them. */
export function countWaiting(line: Line<Ticket>, { countsHeld = true }: Patience): number {
  return countsHeld ? line.waiting : line.waiting - line.held.size
}

function linesUp({ linesUpFor }: Patience, ask: Ask): boolean {
  return linesUpFor === undefined || linesUpFor(ask)
}

let made = 0

/** Most of a long line have not asked for anything yet. */
const NOTHING = new Tried([])

/** Somebody in line, at one place for each counter. */
export class Ticket {
  asks: readonly Ask[]
  /** Those that it stands in line for. */
  awaited: readonly Ask[]
  readonly patience: Patience
  /** When its patience ends, by the limiter's clock. */
  readonly deadlineMs: number
  /** The order in which tickets are made. */
  readonly number: number = made++
  /** Those of `awaited` in whose lines it stands: all, or while one of them has nothing for it, that one. */
  standsFor: readonly Ask[] = []
  /** Where it waits, and afterwards where it has waited. */
  places: readonly Place<Ticket, Line<Ticket>>[] = []
  /** Where it is held. */
  slots: readonly Slot[] = []
  step: Step = "idle"
  /** What it was granted, while it has not gone on with it. */
  granted: Decision | undefined
  /** Sleeping or held: until when. */
  untilMs = 0
  /** Whether a timer ends its patience, and whether it has. */
  isTimed = false
  isLate = false
  /** Being decided by rules that are not in force any more: when that is an answer to wait for, it goes by the new ones. */
  isOutdated = false
  /** What it has asked for last. */
  tried: Tried = NOTHING
  #outcome: Outcome | undefined
  #settle: Settle | undefined
  #turn: AbortController | undefined
  #patience: AbortController | undefined
  #isWaiting = false
  readonly #atEnd: (() => void)[] = []

  constructor(asks: readonly Ask[], awaited: readonly Ask[], patience: Patience, nowMs: number) {
    this.asks = asks
    this.awaited = awaited
    this.patience = patience
    this.deadlineMs = nowMs + patience.maxWaitMs
  }

  /** It asks for something else from now on, under other rules. */
  goBy(asks: readonly Ask[], awaited: readonly Ask[]): void {
    this.asks = asks
    this.awaited = awaited
    this.patience.onAnew?.()
  }

  /** For the timer until it wakes, or goes on: yields what ends it. */
  startTurn(): AbortSignal {
    this.#turn = new AbortController()
    return this.#turn.signal
  }

  endTurn(): void {
    this.#turn?.abort(NOT_NEEDED)
  }

  /** The same for the timer that ends its patience. */
  startPatience(): AbortSignal {
    this.#patience = new AbortController()
    return this.#patience.signal
  }

  get isImpatient(): boolean {
    return this.deadlineMs !== Number.POSITIVE_INFINITY
  }

  /** Whether the store has still to answer. */
  get isUnanswered(): boolean {
    return this.step === "asking"
  }

  /** Whether it believes a refusal of what it has tried, or asks again at once. */
  believes(decision: Decision): boolean {
    if (this.isOutdated) return false
    const by = this.tried.refusedBy(decision, this.awaited)
    // It may be older than units that have come back since.
    return this.places.every(
      ({ line }, i) => this.standsFor[i] !== by || this.tried.number >= line.returnedAt,
    )
  }

  /** Whether it is out of line for good. */
  get hasLeft(): boolean {
    return this.step === "leaving" || this.step === "done"
  }

  /** Whether it stands only where there is nothing for it, or for somebody who came earlier. */
  get isParked(): boolean {
    return this.standsFor.length < this.awaited.length
  }

  get isFirst(): boolean {
    for (const { ahead } of this.places) if (ahead !== undefined) return false
    return true
  }

  /** Whether it counts on what it has asked for: who is behind it may ask too. */
  get isAsking(): boolean {
    return this.step === "asking" || this.step === "granted"
  }

  get mayAsk(): boolean {
    for (const { ahead, line } of this.places) {
      if (!line.hasWindow || (ahead !== undefined && !ahead.who.isAsking)) return false
    }
    return true
  }

  /** Whether as many are held already as may wait. */
  get isCrowdedOut(): boolean {
    const { countsHeld = true, maxWaiting } = this.patience
    return countsHeld && this.places.some(({ line }) => line.held.size >= maxWaiting)
  }

  /** How many may wait in this line, in which it stands. */
  mostWaitingIn(line: Line<Ticket>): number {
    const at = this.places.findIndex((place) => place.line === line)
    return mostWaiting(this.patience, this.standsFor[at] as Ask)
  }

  /** Whether it waits for the rule of a check. */
  waitsFor(check: PolicyCheck): boolean {
    return this.#awaitedAskOf(check) !== undefined
  }

  /** Whether it asks again when the time has come that the refusal tells. */
  waitsOut({ checks }: Decision): boolean {
    return checks.every((check) => {
      const { allowed, shadow, refusal } = check
      if (allowed || shadow) return true
      const ask = this.#awaitedAskOf(check)
      return refusal !== undefined && ENDS.has(refusal) && ask !== undefined && linesUp(this.patience, ask)
    })
  }

  #awaitedAskOf({ policy, shadow }: PolicyCheck): Ask | undefined {
    if (shadow) return undefined
    return this.asks.find((ask) => ask.policy.name === policy && this.patience.waitsFor(ask))
  }

  /** What it asks for now: what a rule admits above its limit may be something else each time. */
  tryNow(): Tried {
    this.tried = new Tried(asksNow(this.asks))
    return this.tried
  }

  /** How long the rules that it waits for hold it before it goes on. */
  delayOf({ checks, delayMs }: Decision): number {
    if (delayMs === 0) return 0
    return Math.max(0, ...checks.filter((check) => this.waitsFor(check)).map((check) => check.delayMs))
  }

  /** It has to wait: whoever wants to know is told once. */
  waits(leave: (reason: unknown) => void): void {
    if (this.#isWaiting || this.patience.onWait === undefined) return
    this.#isWaiting = true
    this.atEnd(this.patience.onWait(leave))
  }

  /** Calls back when it has been answered or has gone; at once where that is so already. */
  atEnd(then: () => void): void {
    if (this.step === "done") then()
    else this.#atEnd.push(then)
  }

  end(outcome: Outcome): void {
    this.step = "done"
    for (const then of this.#atEnd) then()
    this.#turn?.abort(NOT_NEEDED)
    this.#patience?.abort(NOT_NEEDED)
    if (this.#settle === undefined) this.#outcome = outcome
    else if ("error" in outcome) this.#settle.reject(outcome.error)
    else this.#settle.resolve(outcome.decision)
  }

  /** The decision, at once where it has been made. Throws or rejects with why there is none. */
  result(): Decision | Promise<Decision> {
    const outcome = this.#outcome
    if (outcome === undefined) {
      return new Promise((resolve, reject) => {
        this.#settle = { resolve, reject }
      })
    }
    if ("error" in outcome) throw outcome.error
    return outcome.decision
  }
}
