import type { RuleMatch } from "@sluice/core"
import type { ClientAddressOptions } from "@sluice/core/adapters"
import type { Replay } from "@sluice/core/replay"
import type { LogRecord } from "../reading/log.ts"
import { createLogReplay } from "../replay/replay-run.ts"

/** Requests that get separate limits. */
export interface RequestGroup {
  /** "all", the name of a rule, or a login such as "POST /login". */
  readonly name: string
  /** The requests that belong to the group. Absent: all. */
  readonly match?: RuleMatch | undefined
  /** True if the group is a path that looks like a login. */
  readonly isLogin?: boolean
}

/** The fields by which clients are counted, and how their addresses are read. */
export interface ClientReading {
  /** The fields of the suggested rules. */
  readonly by: readonly string[]
  readonly address: ClientAddressOptions
}

/** A limit that is larger than the number of requests in any log. */
const NEVER_REFUSED = 1e15

/**
 * Finds the groups and the client of a request with the code that also decides requests. For this code, each group is
 * a rule that refuses nothing.
 */
export class GroupReader {
  readonly #replay: Replay
  readonly #at: ReadonlyMap<string, number>

  /**
   * `first` is the index of the first group.
   * @throws InvalidOptionError if a field or a match is not valid.
   */
  constructor(groups: readonly RequestGroup[], first: number, reading: ClientReading) {
    this.#at = new Map(groups.map((_, at) => [String(first + at), first + at]))
    this.#replay = createLogReplay({
      ...reading.address,
      rules: groups.map(({ match }, at) => ({
        name: String(first + at),
        field: fieldOf(reading.by),
        limit: NEVER_REFUSED,
        // The counters are not used, so they may expire immediately.
        window: 1_000,
        ...(match && { match }),
      })),
      maxKeys: 1_000,
    })
  }

  /** Calls `visit` with the index of each group that the request belongs to, and with its client. */
  read(record: LogRecord, visit: (group: number, client: string) => void): void {
    const { checks } = this.#replay.offer(record)
    for (let i = 0; i < checks.length; i++) {
      const { policy, partition } = checks[i] as (typeof checks)[number]
      visit(this.#at.get(policy.name) as number, partition)
    }
  }

  /** Fields that the log lacks, by index of a group. */
  get missing(): readonly { readonly group: number; readonly field: string }[] {
    return this.#replay.notJudged.map(({ rule, field }) => ({ group: Number(rule), field }))
  }
}

/** Returns the field of a rule that counts by these fields. */
export function fieldOf(by: readonly string[]): string | readonly string[] {
  return by.length === 1 ? (by[0] as string) : by
}
