import type { ParsedBookOptions } from "./options.ts"
import { sleep } from "./timing.ts"

/** Measures how long ago the rules last matched the source, and reports when they become stale. */
export class Staleness {
  readonly #settings: Pick<ParsedBookOptions, "staleAfterMs" | "timing">
  readonly #report: (ageMs: number) => void
  /** When the rules last matched the source, or else when waiting for them began. */
  #freshAtMs: number
  #alarm: AbortController | undefined

  constructor(settings: Pick<ParsedBookOptions, "staleAfterMs" | "timing">, report: (ageMs: number) => void) {
    this.#settings = settings
    this.#report = report
    this.#freshAtMs = settings.timing.now()
  }

  /** True if the rules are old enough to be stale, should the source be failing. */
  get isDue(): boolean {
    return this.#ageMs() >= this.#settings.staleAfterMs
  }

  /** Records that the rules matched the source at this time, and cancels the report. */
  renew(freshAtMs: number): void {
    this.#freshAtMs = freshAtMs
    this.end()
  }

  /**
   * Starts measuring when the source begins to fail. Reports when the rules become stale, unless they are renewed
   * before.
   */
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

  /** Cancels the report. */
  end(): void {
    this.#alarm?.abort()
  }

  #ageMs(): number {
    return this.#settings.timing.now() - this.#freshAtMs
  }
}
