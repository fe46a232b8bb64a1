import { ignore } from "@sluice/core/rules"
import type { ParsedBookOptions } from "./options.ts"
import { after } from "./timing.ts"

/** Measures how long ago the rules last matched the source, and reports when they become stale. */
export class Staleness {
  readonly #options: ParsedBookOptions
  readonly #report: (ageMs: number) => void
  /** When the rules last matched the source, or else when waiting for them began. */
  #freshAtMs: number
  #cancel: () => void = ignore

  constructor(options: ParsedBookOptions, report: (ageMs: number) => void) {
    this.#options = options
    this.#report = report
    this.#freshAtMs = options.timing.now()
  }

  /** True if the rules are old enough to be stale, should the source be failing. */
  get isDue(): boolean {
    return this.#ageMs() >= this.#options.staleAfterMs
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
  begin(): void {
    const { staleAfterMs, timing } = this.#options
    const leftMs = Math.max(0, staleAfterMs - this.#ageMs())
    this.#cancel = after(leftMs, timing, () => this.#report(this.#ageMs()))
  }

  /** Cancels the report. */
  end(): void {
    this.#cancel()
  }

  #ageMs(): number {
    return this.#options.timing.now() - this.#freshAtMs
  }
}
