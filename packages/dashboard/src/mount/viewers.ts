import type { Clock } from "@sluice/core"
import { after, outsideRequests } from "@sluice/core/kit"

/** Most viewers at a time. */
const MOST_VIEWERS = 50
/** The interval between two updates. */
export const UPDATE_MS = 2_000
/**
 * Number of updates after which a response ends: a minute. The browser then connects again, so that the app checks the
 * session, and `authorize` the visitor. A request from a minute ago may still contain a session that has ended since.
 */
const MOST_UPDATES = 30

/** The open response of a viewer. */
export interface EventStream {
  /** Whether earlier updates still wait to be sent. */
  isFull(): boolean
  send(event: Buffer): void
  /** Ends the response, with a last update if there is one. */
  end(event: Buffer | undefined): void
}

/** A viewer of the page, whose response receives updates. */
export interface Viewer {
  /** Sends the first update. The response has begun. */
  open(stream: EventStream): void
  /** Removes the viewer, whose response has ended. */
  leave(): void
}

interface Watching {
  stream?: EventStream
  updates: number
}

/** Sends the same updates to all viewers. No timer runs while nobody watches. */
export class Viewers {
  readonly #clock: Clock
  readonly #event: () => Buffer
  readonly #watching = new Set<Watching>()
  #cancel: (() => void) | undefined
  #isClosed = false

  /** `event` returns the current update. */
  constructor(clock: Clock, event: () => Buffer) {
    this.#clock = clock
    this.#event = event
  }

  /** Admits a viewer for a minute. Returns undefined if there are too many, or after `close`. */
  enter(): Viewer | undefined {
    if (this.#isClosed || this.#watching.size >= MOST_VIEWERS) return undefined
    const watching: Watching = { updates: 0 }
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

  /** Ends the responses of all viewers. Browsers would connect again while the server closes, so admits no others. */
  close(): void {
    this.#isClosed = true
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
    watching.updates++
    if (watching.updates === MOST_UPDATES) this.#end(watching, event)
    // A slow viewer misses this update. Otherwise updates would pile up in memory.
    else if (!stream.isFull()) stream.send(event)
  }

  #end(watching: Watching, event?: Buffer): void {
    this.#remove(watching)
    watching.stream?.end(event)
  }

  #remove(watching: Watching): void {
    this.#watching.delete(watching)
    if (this.#watching.size > 0) return
    this.#cancel?.()
    this.#cancel = undefined
  }
}
