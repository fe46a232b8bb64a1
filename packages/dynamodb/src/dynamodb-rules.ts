import type { Clock } from "@sluice/core"
import { interval, mustBe, type OptionCheck, steadyClock } from "@sluice/core/kit"
import {
  type LiveSource,
  type LoadedRules,
  type LoadOptions,
  liveRules,
  type RuleSource,
} from "@sluice/rules"
import { scanItems } from "./scan-items.ts"
import { storedItem } from "./stored-item.ts"
import { type ItemReadOptions, openTable } from "./table.ts"
import { type DynamoDBTableOptions, parseTableOptions } from "./table-options.ts"

/** Options of `dynamoDBRules`. */
export interface DynamoDBRulesOptions extends DynamoDBTableOptions {
  /** Poll interval of the rules in milliseconds. Default: 30000. */
  readonly pollMs?: number | undefined
  /**
   * True if every read must return the latest writes, which doubles its cost. Default: false. Reads for a `refresh`,
   * and in the ten seconds after it, always return the latest writes.
   */
  readonly consistentRead?: boolean | undefined
}

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  pollMs: interval,
  consistentRead: mustBe("a boolean", "true or false", (value) => typeof value === "boolean"),
}

/**
 * Creates a source of the rules in a DynamoDB table: one item for each service, in the stored format. `load` sends
 * one GetItem; `loadAll` runs one Scan, a page at a time. If a service does not have an item, its list of rules is
 * empty. The table's key may have any name and be a string or a number. Unless the key is given, one DescribeTable
 * looks it up.
 *
 * Reads are eventually consistent. Fresh reads, and all reads in the ten seconds after a fresh read, are strongly
 * consistent. Both methods reject with {@link RuleSourceError}, which names the table, the service and what to do.
 * They reject with the signal's reason when it is aborted. Nothing is sent before the first load.
 * @example
 * ```ts
 * import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
 * import { dynamoDBRules } from "@sluice/dynamodb"
 *
 * const client = new DynamoDBClient({ region: "eu-central-1", maxAttempts: 2 })
 * const rules = dynamoDBRules({ client, tableName: "rules" }) // for createLimiter({ rules }) or rateLimit({ rules })
 * ```
 * @throws {@link InvalidOptionError} for invalid options.
 */
export function dynamoDBRules(options: DynamoDBRulesOptions): LiveSource {
  return openRules(options, steadyClock)
}

/** Creates a source as `dynamoDBRules` does, with a given clock that measures the time since the latest fresh load. */
export function openRules(options: DynamoDBRulesOptions, clock: Clock): LiveSource {
  const tableOptions = parseTableOptions("dynamoDBRules", options, CHECKS)
  const { pollMs = 30_000, consistentRead = false } = options
  const table = openTable(tableOptions)
  let settledAtMs = Number.NEGATIVE_INFINITY
  const reading = ({ signal, fresh = false }: LoadOptions): ItemReadOptions => {
    const nowMs = clock.now()
    if (fresh) settledAtMs = nowMs + SETTLING_MS
    return { consistent: consistentRead || nowMs < settledAtMs, signal }
  }
  const source: RuleSource = {
    name: `DynamoDB table ${JSON.stringify(table.name)}`,
    pollMs,
    async load(service, options = {}) {
      const found = await table.get(service, reading(options))
      return found === undefined ? NONE : storedItem(table.name, found.key, service, found.item).read()
    },
    loadAll: (options = {}) => scanItems(table, tableOptions.pageSize, reading(options)),
  }
  return { ...source, ...liveRules(source) }
}

/**
 * Reads are strongly consistent for this time after a fresh load, so that a poll cannot restore replaced rules.
 * DynamoDB's replicas agree "usually within a second or less". The time is ten times as long as this second.
 */
const SETTLING_MS = 10_000

const NONE: LoadedRules = { rules: [], problems: [] }
