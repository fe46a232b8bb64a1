/** The machine's monotonic clock, which is the same in all processes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** A work of a process, with times of the machine's monotonic clock. */
export interface Work {
  readonly worker: number
  readonly user: string
  readonly beganMs: number
  /** When the work ends at the latest. */
  readonly untilMs: number
  /** When the work ended, or its process was killed. */
  endedMs: number
  /** When its permit was released, or ends by itself because its process was killed. */
  releasedMs: number
  /** True if it ran when its process was killed. */
  wasKilled: boolean
}

/** A count of the store, which was read between two times. */
interface Sample {
  readonly fromMs: number
  readonly toMs: number
  readonly counted: number
}

interface Absence {
  readonly fromMs: number
  readonly toMs: number
}

/** A period, and the user whose works are meant. Default: the whole history of all users. */
export interface Part {
  readonly fromMs?: number
  readonly toMs?: number
  readonly user?: string
}

/**
 * How long after its grant a work begins at most, in milliseconds. A sample may contain the permit of a work that has not
 * begun yet.
 */
const TO_BEGIN_MS = 250

/** What the witness knows: all works of all processes, when a process did not run, and what the store counted. */
export class History {
  readonly works: Work[] = []
  readonly samples: Sample[] = []
  /** Number of permits that each process has reported as lost. */
  readonly lost = new Map<number, number>()
  readonly #absences = new Map<number, Absence[]>()
  readonly #holdMs: number

  constructor(holdMs: number) {
    this.#holdMs = holdMs
  }

  absent(worker: number, absence: Absence): void {
    this.#absences.set(worker, [...(this.#absences.get(worker) ?? []), absence])
  }

  /** A process was killed, and all its works with it. */
  died(worker: number, atMs: number): void {
    for (const work of this.works) {
      if (work.worker !== worker || work.releasedMs < Number.POSITIVE_INFINITY) continue
      work.wasKilled = work.endedMs > atMs
      work.endedMs = Math.min(work.endedMs, atMs)
      work.releasedMs = atMs + this.#holdMs
    }
  }

  /** Returns the works that run at a time, by default now. */
  running({ worker, atMs = Number.MAX_VALUE }: { worker?: number; atMs?: number } = {}): Work[] {
    return this.works.filter(
      (work) => isWithin(atMs, work) && (worker === undefined || work.worker === worker),
    )
  }

  /** Most works that ran at the same time. */
  mostRunning(part?: Part): number {
    return this.#most(part, ({ endedMs }) => endedMs)
  }

  /**
   * Most works that ran at the same time and can have lost no permit. A process that was away for a third of `hold` may
   * lose the permits that it held then.
   */
  mostHeld(part?: Part): number {
    return this.#most(part, (work) => Math.min(this.#lostMs(work), work.endedMs))
  }

  /** Permits that were reported as lost by processes that were never away for a third of `hold`. */
  get lostWithoutReason(): number {
    let permits = 0
    for (const [worker, lost] of this.lost) {
      const own = this.works.filter((work) => work.worker === worker)
      if (own.every((work) => this.#lostMs(work) > work.releasedMs)) permits += lost
    }
    return permits
  }

  /** The longest time for which a process was away within a period, in all. */
  lateMs(fromMs: number, toMs: number): number {
    let mostMs = 0
    for (const absences of this.#absences.values()) {
      mostMs = Math.max(mostMs, within(absences, fromMs, toMs))
    }
    return mostMs
  }

  /** Samples that the works do not explain: fewer permits than are held, or more than may be counted. */
  disagreements(fromMs: number, toMs: number): (Sample & { least: number; most: number })[] {
    return this.samplesOf(fromMs, toMs).flatMap((sample) => {
      let [least, most] = [0, 0]
      for (const work of this.works) {
        if (work.beganMs <= sample.fromMs && work.endedMs >= sample.toMs && !this.#isLost(work, sample))
          least++
        if (work.beganMs <= sample.toMs + TO_BEGIN_MS && work.releasedMs >= sample.fromMs) most++
      }
      return sample.counted < least || sample.counted > most ? [{ ...sample, least, most }] : []
    })
  }

  samplesOf(fromMs: number, toMs: number): Sample[] {
    return this.samples.filter((sample) => sample.fromMs >= fromMs && sample.toMs <= toMs)
  }

  /** Whether a permit may be lost and not yet renewed again. */
  #isLost(work: Work, { toMs }: Sample): boolean {
    if (this.#lostMs(work) > toMs) return false
    const absences = this.#absences.get(work.worker) ?? []
    const back = Math.max(...absences.filter(({ fromMs }) => fromMs <= toMs).map((each) => each.toMs))
    return toMs < back + this.#holdMs
  }

  /** When the permit of a work may be lost: its process was away for a third of `hold`, within half of `hold`. */
  #lostMs({ worker, beganMs, releasedMs }: Work): number {
    const own = (this.#absences.get(worker) ?? []).filter(
      ({ fromMs, toMs }) => toMs > beganMs && fromMs < releasedMs,
    )
    const [windowMs, mostMs] = [this.#holdMs / 2, this.#holdMs / 3]
    let lostMs = Number.POSITIVE_INFINITY
    // A period that contains the longest absences ends with one of them, or begins with one of them.
    for (const endMs of own.flatMap(({ fromMs, toMs }) => [toMs, fromMs + windowMs])) {
      const awayMs = within(own, Math.max(beganMs, endMs - windowMs), endMs)
      if (awayMs >= mostMs) lostMs = Math.min(lostMs, endMs - (awayMs - mostMs))
    }
    return lostMs
  }

  /** Most works at the same time, of those that begin within a period. */
  #most({ fromMs = 0, toMs = Number.MAX_VALUE, user }: Part = {}, endOf: (work: Work) => number): number {
    const meant = this.works.filter((work) => user === undefined || work.user === user)
    const spans = meant.map((work) => ({ beganMs: work.beganMs, endedMs: endOf(work) }))
    const begins = spans.filter(({ beganMs }) => beganMs >= fromMs && beganMs <= toMs)
    return Math.max(0, ...begins.map(({ beganMs }) => spans.filter((span) => isWithin(beganMs, span)).length))
  }
}

/** Returns for how long absences last within a period. */
function within(absences: readonly Absence[], fromMs: number, toMs: number): number {
  return absences.reduce(
    (sum, each) => sum + Math.max(0, Math.min(toMs, each.toMs) - Math.max(fromMs, each.fromMs)),
    0,
  )
}

function isWithin(atMs: number, { beganMs, endedMs }: Pick<Work, "beganMs" | "endedMs">): boolean {
  return beganMs <= atMs && endedMs > atMs
}
