import { z } from "zod"
import { says } from "../problems.ts"
import type { LoadedRules, RuleSource } from "../source.ts"
import { scanItems } from "./scan-items.ts"
import { storedItem } from "./stored-item.ts"
import { openTable, type ReadOptions } from "./table.ts"
import { type DynamoDBTableOptions, interval, parseTableOptions } from "./table-options.ts"

/** Options of `dynamoDBRules`. */
export interface DynamoDBRulesOptions extends DynamoDBTableOptions {
  /** How often the rules are loaded again, in milliseconds: default 30000. */
  readonly pollMs?: number | undefined
  /** Whether reads see what was written a moment ago, which costs twice as much: default false. */
  readonly consistentRead?: boolean | undefined
}

const optionsShape = {
  pollMs: interval.optional(),
  consistentRead: z.boolean(says("a boolean", "true or false")).optional(),
}

/**
 * The rules in a DynamoDB table: one item for each service, in the stored shape. `load` is one GetItem; `loadAll` is one
 * Scan, a page at a time. The table's key may have any name and be a string or a number; it is learnt by one
 * DescribeTable unless it is given. A service for which there is no item has no rules.
 *
 * Both reject with RuleSourceError, which names the table, the service and what to do, and with the signal's reason when
 * it is aborted. Throws InvalidOptionError for wrong options. Sends nothing before the first load.
 */
export function dynamoDBRules(options: DynamoDBRulesOptions): RuleSource {
  const tableOptions = parseTableOptions("dynamoDBRules", options, optionsShape)
  const { pollMs = 30_000, consistentRead = false } = options
  const table = openTable(tableOptions)
  const reading = (signal: AbortSignal | undefined): ReadOptions => ({ consistent: consistentRead, signal })
  return {
    name: `DynamoDB table ${JSON.stringify(table.name)}`,
    pollMs,
    async load(service, { signal } = {}) {
      const found = await table.get(service, reading(signal))
      return found === undefined ? NONE : storedItem(table.name, found.key, service, found.item).read()
    },
    loadAll: ({ signal } = {}) => scanItems(table, tableOptions.pageSize, reading(signal)),
  }
}

const NONE: LoadedRules = { rules: [], problems: [] }
