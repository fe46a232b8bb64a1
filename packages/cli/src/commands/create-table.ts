import type { Io } from "../io.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { type TableOptions, withTable } from "../table.ts"

/** Options of `sluice rules create-table`. */
export interface CreateTableOptions extends TableOptions {
  readonly keyType?: "S" | "N"
}

/** Runs `sluice rules create-table --table T`: creates a table for rules and waits until it is ready. */
export async function createTable(options: CreateTableOptions, io: Io): Promise<CommandOutcome> {
  await withTable(options, io, (registry) => registry.createTable(), options.keyType)
  return {
    exitCode: EXIT.ok,
    json: { ok: true, table: options.table },
    text: [`table ${options.table} is ready`],
  }
}
