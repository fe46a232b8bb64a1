import { type Command, InvalidArgumentError, Option } from "commander"
import { help } from "./help.ts"
import type { Io } from "./io.ts"
import { addLogOptions } from "./log-options.ts"
import { jsonOption, maxBytesOption, serviceOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"

/** Adds `sluice rules replay`. */
export function addReplayCommand(rules: Command, io: Io, done: (outcome: CommandOutcome) => void): void {
  const replaying = rules
    .command("replay")
    .description("Shows which requests and clients in access logs the rules would have refused.")
    .argument("<rules>", "the file of rules; - is standard input")
    .argument("<logs...>", "access logs, compressed or not; - is standard input")
    .addOption(serviceOption("the service of the log, if the file has rules of several"))
  addLogOptions(replaying)
    .option(
      "--against <file>",
      "compare with these rules: which requests are newly refused or no longer refused",
    )
    .addOption(
      new Option("--algorithm <names>", "compare algorithms, with commas between their names").argParser(
        parseNames,
      ),
    )
    .option("--max-refused <bound>", boundHelp("requests"))
    .option("--max-refused-clients <bound>", boundHelp("clients"))
    .option("--max-newly-refused <bound>", boundHelp("requests newly refused, with --against"))
    .option(
      "--never <file>",
      "fail if a client in this file is refused: addresses, networks, values of fields",
    )
    .option("--report <file>", "write a report with plots, as one HTML file that works offline")
    .option("--hash-keys", "show hashes instead of clients")
    .option("--skip-unjudged", "accept rules that the log cannot judge")
    .addOption(
      thresholdOption("--slightly", 1.5, "up to which multiple of the limit a client is slightly over it"),
    )
    .addOption(thresholdOption("--far", 5, "above which multiple of the limit a client is far over it"))
    .addOption(
      new Option("--max-keys <n>", "maximum number of counters in memory (default: 20000000)").argParser(
        parseKeys,
      ),
    )
    .addOption(maxBytesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      help(
        "sluice rules replay rules.yaml access.log.*.gz --report replay.html",
        "every bound holds, or none was given",
        "a bound is exceeded, or problems",
        REPLAY_HELP,
      ),
    )
    .action(async (file: string, logs: string[], options) => {
      // Loaded on demand, because other commands need neither log formats nor statistics.
      const { replay } = await import("./commands/replay.ts")
      done(await replay(file, logs, options, io))
    })
}

const REPLAY_HELP = `
Formats: common and combined logs of nginx and Apache, logs with --format, AWS ALB,
CloudFront, JSON lines of Caddy, Traefik, GCP, pino-http and Fastify, and other JSON
lines with --map, such as --map ip=client.addr --map time=ts --map user_id=user.id.

A rule whose field is not in the log is not judged, and the command exits with 2. The
log shows what clients did without these rules: refused clients retry, wait or leave.`

function boundHelp(what: string): string {
  return `fail if more are refused: ${what}, as a number or as 0.5%`
}

function thresholdOption(flag: string, byDefault: number, description: string): Option {
  return new Option(`${flag} <multiple>`, `${description} (default: ${byDefault})`).argParser((text) => {
    const multiple = /^\d{1,4}(?:\.\d{1,3})?$/.test(text) ? Number(text) : 0
    if (multiple >= 1) return multiple
    throw new InvalidArgumentError("Expected a number of at least 1, such as 1.5.")
  })
}

const MOST_KEYS = 100_000_000

function parseKeys(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= MOST_KEYS) return Number(text)
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${MOST_KEYS}.`)
}

function parseNames(text: string): string[] {
  return [...new Set(text.split(",").map((each) => each.trim()))]
}
