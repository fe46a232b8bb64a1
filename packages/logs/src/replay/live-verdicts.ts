import type { ReplayVerdict } from "@sluice/core/replay"
import type { LiveVerdict, LogFile, LogRecord } from "../reading/log.ts"
import type { LiveComparison } from "./result.ts"

/**
 * Maximum number of differences that are listed. Further differences are only counted, because such a log was written
 * under other rules.
 */
const MOST_DIFFERENCES = 10_000

interface Difference {
  readonly file: number
  readonly line: number
  readonly live: string
  readonly replayed: string
}

/** Compares the verdicts that the app has logged with the verdicts of a replay. */
export class LiveVerdicts {
  #compared = 0
  #different = 0
  readonly #differences: Difference[] = []
  /** The verdicts as strings that all requests share. A string from the log would keep a chunk of the log in memory. */
  readonly #texts = new Map<string, string>()

  compare({ file, line }: LogRecord, live: LiveVerdict, verdict: ReplayVerdict): void {
    this.#compared++
    const { allowed, refusedBy, shadowedBy } = verdict
    const isSame = live.allowed === allowed && (allowed || refusedBy.includes(live.policy))
    if (isSame && isSameList(live.shadowed ?? [], shadowedBy)) return
    this.#different++
    if (this.#differences.length >= MOST_DIFFERENCES) return
    this.#differences.push({
      ...{ file, line },
      live: this.#textOf(live.allowed, [live.policy], live.shadowed ?? []),
      replayed: this.#textOf(allowed, refusedBy, shadowedBy),
    })
  }

  /** Returns the comparison. Undefined if the log contains no verdicts. */
  result(files: readonly LogFile[]): LiveComparison | undefined {
    if (this.#compared === 0) return undefined
    return {
      compared: this.#compared,
      different: this.#different,
      differences: this.#differences.map((each) => ({ ...each, file: (files[each.file] as LogFile).name })),
    }
  }

  #textOf(allowed: boolean, policies: readonly string[], shadowed: readonly string[]): string {
    const shadow = shadowed.length === 0 ? "" : `, shadow refusal by ${shadowed.join(" and ")}`
    const text = `${allowed ? "admitted" : `refused by ${policies.join(" and ")}`}${shadow}`
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    const own = Buffer.from(text, "utf8").toString("utf8")
    this.#texts.set(own, own)
    return own
  }
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name) => other.includes(name))
}
