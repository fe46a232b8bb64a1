import type { Clock } from "@sluice/core"
import { after, outsideRequests } from "@sluice/core/kit"

/** Most viewers at a time. */
const MOST_VIEWERS = 50
/** The interval between two updates. */
export const UPDATE_MS = 2_000
/** Number of updates after which a viewer must be authorized again: a minute. */
const UPDATES_AUTHORIZED = 30
/** Number of updates in a row that a viewer may miss before it is disconnected: a minute. */
const MOST_MISSED = 30

/** The open response of a viewer. */
export interface EventStream {
  /** Whether earlier updates still wait to be sent. */
  isFull(): boolean
  send(event: Buffer): void
  end(): void
}

/** A viewer of the page, whose response receives updates. */
export interface Viewer {
  /** Sends the first update. The response has begun. */
  open(stream: EventStream): void
  /** Removes the viewer, whose response has ended. */
  leave(): void
}

interface Watching {
  readonly isAllowed: () => Promise<boolean>
  stream?: EventStream
  updates: number
  missed: number
}

/** Sends the same updates to all viewers. No timer runs while nobody watches. */
export class Viewers {
  readonly #clock: Clock
  readonly #event: () => Buffer
  readonly #watching = new Set<Watching>()
  #cancel: (() => void) | undefined

  /** `event` returns the current update. */
  constructor(clock: Clock, event: () => Buffer) {
    this.#clock = clock
    this.#event = event
  }

  /** Admits a viewer, who is asked for permission again every minute. Returns undefined if there are too many. */
  enter(isAllowed: () => Promise<boolean>): Viewer | undefined {
    if (this.#watching.size >= MOST_VIEWERS) return undefined
    const watching: Watching = { isAllowed, updates: 0, missed: 0 }
    this.#watching.add(watching)
    return {
      open: (stream) => {
        watching.stream = stream
        stream.send(this.#event())
        if (this.#cancel === undefined) this.#wait()
      },
      leave: () => this.#remove(watching),
    }
  }

  /** Ends the responses of all viewers. */
  close(): void {
    for (const watching of this.#watching) this.#end(watching)
  }

  #wait(): void {
    const update = (): void => {
      this.#wait()
      const event = this.#event()
      for (const watching of this.#watching) this.#update(watching, event)
    }
    this.#cancel = outsideRequests(() => after(UPDATE_MS, this.#clock, update))
  }

  #update(watching: Watching, event: Buffer): void {
    const { stream } = watching
    if (stream === undefined) return
    watching.missed = stream.isFull() ? watching.missed + 1 : 0
    watching.updates++
    if (watching.missed > MOST_MISSED) this.#end(watching)
    // A slow viewer misses this update. Otherwise updates would pile up in memory.
    else if (watching.missed === 0) stream.send(event)
    if (watching.updates % UPDATES_AUTHORIZED === 0) void this.#askAgain(watching)
  }

  async #askAgain(watching: Watching): Promise<void> {
    if (!(await watching.isAllowed())) this.#end(watching)
  }

  #end(watching: Watching): void {
    this.#remove(watching)
    watching.stream?.end()
  }

  #remove(watching: Watching): void {
    this.#watching.delete(watching)
    if (this.#watching.size > 0) return
    this.#cancel?.()
    this.#cancel = undefined
  }
}
