import * as v from "valibot"
import { type Clock, steadyClock } from "../../ground/clock.ts"
import { says } from "../../ground/shape.ts"
import type { LoadedRules, LoadOptions, RuleSource } from "../source.ts"
import { scanItems } from "./scan-items.ts"
import { storedItem } from "./stored-item.ts"
import { type ItemReadOptions, openTable } from "./table.ts"
import { type DynamoDBTableOptions, interval, parseTableOptions } from "./table-options.ts"

/** Options of `dynamoDBRules`. */
export interface DynamoDBRulesOptions extends DynamoDBTableOptions {
  /** How often the rules are loaded again, in milliseconds: default 30000. */
  readonly pollMs?: number | undefined
  /**
   * Whether every read sees what was written a moment ago, which costs twice as much: default false. Those for a
   * `refresh`, and those of the ten seconds after it, do in any case.
   */
  readonly consistentRead?: boolean | undefined
}

const optionsShape = {
  pollMs: interval,
  consistentRead: v.optional(v.boolean(says("a boolean", "true or false"))),
}

/**
 * The rules in a DynamoDB table: one item for each service, in the stored shape. `load` is one GetItem; `loadAll` is one
 * Scan, a page at a time. The table's key may have any name and be a string or a number; it is learnt by one
 * DescribeTable unless it is given. A service for which there is no item has no rules.
 *
 * Reads are eventually consistent, unless they are to be fresh: those, and all in the ten seconds after one, see what was
 * written before. Both reject with {@link RuleSourceError}, which names the table, the service and what to do, and with the
 * signal's reason when it is aborted. Sends nothing before the first load.
 * @example
 * ```ts
 * import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
 * import { dynamoDBRules } from "@sluice/core/dynamodb"
 *
 * const client = new DynamoDBClient({ region: "eu-central-1", maxAttempts: 2 })
 * const rules = dynamoDBRules({ client, tableName: "rules" }) // for createLimiter({ rules }) or rateLimit({ rules })
 * ```
 * @throws {@link InvalidOptionError} for wrong options.
 */
export function dynamoDBRules(options: DynamoDBRulesOptions): RuleSource {
  return openRules(options, steadyClock)
}

/** The same with the clock that tells how long ago a fresh load was. */
export function openRules(options: DynamoDBRulesOptions, clock: Clock): RuleSource {
  const tableOptions = parseTableOptions("dynamoDBRules", options, optionsShape)
  const { pollMs = 30_000, consistentRead = false } = options
  const table = openTable(tableOptions)
  let settledAtMs = Number.NEGATIVE_INFINITY
  const reading = ({ signal, fresh = false }: LoadOptions): ItemReadOptions => {
    const nowMs = clock.now()
    if (fresh) settledAtMs = nowMs + SETTLING_MS
    return { consistent: consistentRead || nowMs < settledAtMs, signal }
  }
  return {
    name: `DynamoDB table ${JSON.stringify(table.name)}`,
    pollMs,
    async load(service, options = {}) {
      const found = await table.get(service, reading(options))
      return found === undefined ? NONE : storedItem(table.name, found.key, service, found.item).read()
    },
    loadAll: (options = {}) => scanItems(table, tableOptions.pageSize, reading(options)),
  }
}

/**
 * A poll must not bring back what a fresh load has replaced. DynamoDB's copies are the same "usually within a second or
 * less"; for ten times as long reads are of the one that has every write.
 */
const SETTLING_MS = 10_000

const NONE: LoadedRules = { rules: [], problems: [] }
