import { RuleConflictError } from "@sluice/rules"
import type { Io } from "../io.ts"
import { tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { type TableOptions, withTable } from "../table.ts"
import { UsageError } from "../usage-error.ts"

/** Options of `sluice rules remove`. */
export interface RemoveCommandOptions extends TableOptions {
  readonly ifVersion?: number
  readonly force?: boolean
}

/** Runs `sluice rules remove SERVICE --table T --if-version N`: removes the rules of a service. */
export async function remove(
  service: string,
  options: RemoveCommandOptions,
  io: Io,
): Promise<CommandOutcome> {
  const { ifVersion, force, table } = options
  const version = force === true ? "any" : ifVersion
  if (version === undefined) {
    throw new UsageError(
      "--if-version is missing: give the version to remove (`list` shows it), or remove any version with --force",
    )
  }
  try {
    const wasThere = await withTable(options, io, (registry) => registry.remove(service, { version }))
    const told = wasThere ? `removed from table ${table}` : `has no rules in table ${table}`
    return {
      exitCode: EXIT.ok,
      json: { ok: true, service, removed: wasThere },
      text: [[tinted("strong", service), `: ${told}`]],
    }
  } catch (error) {
    if (!(error instanceof RuleConflictError)) throw error
    const there = error.found === undefined ? "has no rules for it" : `has version ${error.found.version}`
    return {
      exitCode: EXIT.problems,
      json: { ok: false, service, removed: false, tableVersion: error.found?.version },
      text: [],
      errors: [
        tinted("bad", `${service}: not removed: --if-version is ${ifVersion}, but the table ${there}`),
      ],
    }
  }
}
