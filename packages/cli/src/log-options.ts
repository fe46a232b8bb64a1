import type { ClientAddressOptions } from "@sluice/core/adapters"
import type { ReadLogOptions } from "@sluice/logs"
import { type Command, InvalidArgumentError, Option } from "commander"
import { ipv6PrefixOption } from "./options.ts"

/** Options of every command that reads logs. */
export interface LogOptions {
  readonly format?: string
  readonly map?: ReadLogOptions["map"]
  /** Milliseconds. */
  readonly reorder?: number
  readonly withoutStatus?: readonly number[]
  readonly trustedProxies?: number | readonly string[]
  readonly clientIpHeader?: string
  readonly ipv6Prefix?: ClientAddressOptions["ipv6Prefix"]
}

/** Adds the options of a command that reads logs. Returns the command. */
export function addLogOptions(command: Command): Command {
  return command
    .option(
      "--format <line>",
      "the log_format of nginx or the LogFormat of Apache, or the name of a format (default: detected)",
    )
    .addOption(
      new Option(
        "--map <field=source>",
        "read a field from a variable or a JSON path; may be repeated",
      ).argParser(collectMap),
    )
    .addOption(new Option("--reorder <time>", "how late a line may come (default: 10s)").argParser(parseTime))
    .addOption(
      new Option("--without-status <status>", "skip lines with this status; may be repeated").argParser(
        collectStatus,
      ),
    )
    .addOption(
      new Option(
        "--trusted-proxies <proxies>",
        "number of proxies, or their addresses or names (private, cloudflare), with commas",
      ).argParser(parseProxies),
    )
    .option("--client-ip-header <name>", "the header that a trusted proxy writes the address into")
    .addOption(ipv6PrefixOption())
}

/** Returns the options in the form that `readLogs` accepts. */
export function readLogOptionsOf({ format, map, reorder, withoutStatus }: LogOptions): ReadLogOptions {
  return { format, map, reorderMs: reorder, withoutStatus }
}

function collectMap(text: string, earlier: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=")
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError("Expected a field and its source, such as user_id=user.id.")
  return { ...earlier, [text.slice(0, at)]: text.slice(at + 1) }
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const LONGEST_REORDER_MS = 3_600_000

function parseTime(text: string): number {
  const [, digits = "", unit = ""] = /^(\d{1,7})(ms|s|m|h)$/.exec(text) ?? []
  const ms = Number(digits) * (UNITS_MS[unit] ?? Number.NaN)
  if (ms <= LONGEST_REORDER_MS) return ms
  throw new InvalidArgumentError("Expected a time of at most an hour, such as 500ms, 10s or 1m.")
}

function collectStatus(text: string, earlier: readonly number[] = []): number[] {
  if (!/^[1-5]\d\d$/.test(text)) throw new InvalidArgumentError("Expected a status from 100 to 599.")
  return [...earlier, Number(text)]
}

function parseProxies(text: string): number | string[] {
  return /^\d{1,3}$/.test(text) ? Number(text) : text.split(",").map((each) => each.trim())
}
