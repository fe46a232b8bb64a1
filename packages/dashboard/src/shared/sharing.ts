import { randomUUID } from "node:crypto"
import { setImmediate as nextTurn } from "node:timers/promises"
import { withoutCredentials } from "@sluice/core"
import { after, beforeDeadline, outsideRequests, sentenceOf, steadyClock, textOf } from "@sluice/core/kit"
import type { ActivitySnapshot } from "../recorder/snapshot.ts"
import type { ActivityBoard, BoardState } from "./activity-board.ts"
import { snapshotsIn } from "./snapshot-text.ts"

/** Interval at which a process asks whether somebody watches. */
const ASK_EVERY_MS = 1_000
/** For how long the first viewer waits, until the other processes have asked and written. */
const FIRST_MS = 1_500
/** Interval at which a process writes its snapshots while somebody watches. */
const WRITE_EVERY_MS = 2_000
/** For how long the texts of the others are used again, so that many viewers cause no more calls than one. */
const KEPT_MS = 1_000
/** Longest wait for a board. A board in Redis gives up earlier, with a better reason. */
const WITHIN_MS = 2_000

/** What the other processes have recorded. */
export interface Others {
  readonly snapshots: readonly ActivitySnapshot[]
  /** Sentences about what the snapshots lack. Undefined if they contain everything. */
  readonly missing: string | undefined
}

/** Exchanges the snapshots of this process with other processes, by one call at a time. */
export class Sharing {
  readonly #board: ActivityBoard
  readonly #ownText: () => string
  readonly #process = randomUUID()
  /** Resolves when the call in flight has ended, even if nobody waits for it any longer. */
  #calling: Promise<void> | undefined
  /** What the other processes have recorded, if it has just been asked for. */
  #others: Promise<Others> | undefined
  #cancel: () => void = () => undefined
  #isStopped = false

  /** `ownText` returns the snapshots of this process as a text. */
  constructor(board: ActivityBoard, ownText: () => string) {
    this.#board = board
    this.#ownText = ownText
    this.#askIn(ASK_EVERY_MS, false)
  }

  /** Returns what the other processes have recorded, and makes them write it for the next ten seconds. Never rejects. */
  others(): Promise<Others> {
    const forget = (): void => {
      this.#others = undefined
    }
    this.#others ??= this.#read().finally(() => outsideRequests(() => after(KEPT_MS, steadyClock, forget)))
    return this.#others
  }

  /** Stops asking and writing. The others can still be read. */
  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  #askIn(ms: number, isWatched: boolean): void {
    if (this.#isStopped) return
    this.#cancel = outsideRequests(() => after(ms, steadyClock, () => void this.#ask(isWatched)))
  }

  /** Asks whether somebody watches. Writes the snapshots, if somebody did at the previous call. */
  async #ask(isWatched: boolean): Promise<void> {
    try {
      const text = isWatched ? this.#ownText() : undefined
      const state = await this.#exchange(text, false)
      this.#askIn(!state.isWatched ? ASK_EVERY_MS : isWatched ? WRITE_EVERY_MS : 0, state.isWatched)
    } catch {
      // Whoever watches sees the reason. Ask until the board responds again.
      this.#askIn(ASK_EVERY_MS, false)
    }
  }

  async #read(): Promise<Others> {
    try {
      let state = await this.#exchange(undefined, true)
      if (!state.isWatched) {
        await outsideRequests(
          () => new Promise<unknown>((go) => after(FIRST_MS, steadyClock, () => go(undefined), go, true)),
        )
        state = await this.#exchange(undefined, true)
      }
      const { texts, isFull } = state
      const snapshots: ActivitySnapshot[] = []
      const missing = new Set(isFull ? ["The board is full, so it may lack processes."] : [])
      for (const text of texts) {
        // Let requests continue between two long texts.
        await nextTurn()
        const read = snapshotsIn(text)
        if (read === undefined) missing.add("A process shares what this version cannot read.")
        else if (!read.isWhole)
          missing.add("A process has too many rules, so it shares only those that refuse most.")
        snapshots.push(...(read?.snapshots ?? []))
      }
      return { snapshots, missing: missing.size === 0 ? undefined : [...missing].join(" ") }
    } catch (error) {
      const reason = sentenceOf(error instanceof Error ? error.message : textOf(error))
      return { snapshots: [], missing: `Only this process is included. ${withoutCredentials(reason)}` }
    }
  }

  async #exchange(text: string | undefined, isWatching: boolean): Promise<BoardState> {
    while (this.#calling !== undefined) await inTime(this.#calling, isWatching)
    const call = outsideRequests(async () => this.#board.exchange(this.#process, text, isWatching))
    const ended = (): void => {
      this.#calling = undefined
    }
    this.#calling = call.then(ended, ended)
    return inTime(call, isWatching)
  }
}

/** Only a viewer's wait keeps the process alive. */
function inTime<Value>(work: Promise<Value>, keepsAlive: boolean): Promise<Value> {
  const late = () => Promise.reject(new Error(`The board did not respond within ${WITHIN_MS} ms.`))
  return beforeDeadline(work, WITHIN_MS, late, keepsAlive)
}
