import { existsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import {
  type Logs,
  readLogs,
  type SuggestOptions,
  suggestedRulesFile,
  suggestedStoredRules,
  suggestLimits,
  suggestLines,
} from "@sluice/logs"
import { counted } from "../counted.ts"
import type { Io } from "../io.ts"
import { formatJson } from "../line.ts"
import { type LogOptions, readLogOptionsOf } from "../log-options.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { withProgress } from "../progress.ts"
import { replaceFile } from "../replace-file.ts"
import { isJsonName, readRulesFile } from "../rules-file.ts"
import { UsageError } from "../usage-error.ts"
import { refusal } from "./check.ts"
import { unparsedLines } from "./unparsed-lines.ts"

/** Options of `sluice rules suggest`. */
export interface SuggestCommandOptions
  extends LogOptions,
    Omit<SuggestOptions, keyof LogOptions | "matchFrom"> {
  /** A rules file. Requests that a `match` in the file selects get separate limits. */
  readonly matchFrom?: string
  readonly output?: string
}

/**
 * Runs `sluice rules suggest LOGS...`: reads the logs twice, suggests limits, and writes them as rules in shadow
 * mode. Standard input is read only once, so the number of requests that the limits would refuse is then unknown.
 */
export async function suggest(
  logs: readonly string[],
  options: SuggestCommandOptions,
  io: Io,
): Promise<CommandOutcome> {
  const output = options.output === "-" ? undefined : options.output
  if (output !== undefined) rejectExisting(output)
  const file = options.matchFrom === undefined ? undefined : await readRulesFile(options.matchFrom, {}, io)
  if (file !== undefined && file.problems.length > 0) return refusal(file)

  const passes: Logs[] = []
  const open = (): Logs => {
    const pass = readLogs(logs, readLogOptionsOf(options), io)
    passes.push(pass)
    return withProgress(pass, io)
  }
  const matchFrom = file?.documents.flatMap(({ rules }) => rules)
  const { by, windows, timeZone, algorithm, refuseAtMost, maxClients, capacity, hashKeys } = options
  const { trustedProxies, clientIpHeader, ipv6Prefix } = options
  const result = await suggestLimits(open, {
    ...{ by, windows, timeZone, algorithm, refuseAtMost, maxClients, matchFrom, capacity, hashKeys },
    ...{ trustedProxies, clientIpHeader, ipv6Prefix },
  })
  const rules = suggestedStoredRules(result)
  const isJson = output !== undefined && isJsonName(output)
  const text = isJson ? `${formatJson({ rules }, 2)}\n` : suggestedRulesFile(result)
  if (output !== undefined) await replaceFile(output, text)
  return {
    exitCode: EXIT.ok,
    warnings: unparsedLines((passes[0] as Logs).summary, options.hashKeys === true),
    json: { ok: true, ...result, ...(output === undefined ? { rules } : { output }) },
    text:
      options.output === "-"
        ? text
        : [
            ...suggestLines(result),
            ...(output === undefined
              ? []
              : [`${output}: ${counted(rules.length, "rule")}, all of them in shadow mode`]),
          ],
  }
}

/** Rejects an existing file, because rules in shadow mode would replace limits that may be in force. */
function rejectExisting(path: string): void {
  if (!existsSync(dirname(path)))
    throw new UsageError(`--output: the folder ${dirname(path)} does not exist: create it first`)
  if (existsSync(path) && statSync(path).isFile())
    throw new UsageError(`--output: ${path} already exists: give the name of a new file, or remove it first`)
}
