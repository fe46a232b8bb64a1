import type { ParsedBookOptions } from "./options.ts"
import { sleep } from "./timing.ts"

/** Measures how long rules have not been known to be those of the source, and reports when that is too long. */
export class Staleness {
  readonly #settings: Pick<ParsedBookOptions, "staleAfterMs" | "timing">
  readonly #report: (ageMs: number) => void
  /** Until when the rules are known to be those of the source, or else when waiting for them began. */
  #freshAtMs: number
  #alarm: AbortController | undefined

  constructor(settings: Pick<ParsedBookOptions, "staleAfterMs" | "timing">, report: (ageMs: number) => void) {
    this.#settings = settings
    this.#report = report
    this.#freshAtMs = settings.timing.now()
  }

  /** Whether the rules would be stale by now if the source failed. */
  get isDue(): boolean {
    return this.#ageMs() >= this.#settings.staleAfterMs
  }

  /** The rules are known to be those of the source at this time. */
  renew(freshAtMs: number): void {
    this.#freshAtMs = freshAtMs
    this.end()
  }

  /** The source has begun to fail: reports when the rules are stale, unless they are renewed before. */
  async begin(): Promise<void> {
    const { staleAfterMs, timing } = this.#settings
    this.#alarm = new AbortController()
    try {
      await sleep(Math.max(0, staleAfterMs - this.#ageMs()), this.#alarm.signal, timing)
    } catch {
      return
    }
    this.#report(this.#ageMs())
  }

  /** Reports nothing more. */
  end(): void {
    this.#alarm?.abort()
  }

  #ageMs(): number {
    return this.#settings.timing.now() - this.#freshAtMs
  }
}
