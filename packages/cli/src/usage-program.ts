import { type Command, Option } from "commander"
import { redisOption, requireService } from "./clients-program.ts"
import type { Io } from "./io.ts"
import { ipv6PrefixOption, jsonOption, prefixOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"

/** Adds `sluice usage`. */
export function addUsageCommand(program: Command, io: Io, done: (outcome: CommandOutcome) => void): void {
  program
    .command("usage")
    .description("Adds up recorded decisions: what each client has used in each calendar period.")
    .argument("<files...>", "records of jsonLinesSink, compressed with gzip or not; - is standard input")
    .option("-s, --service <id>", "the service whose clients are listed (required)")
    .option("--from <date>", "only periods that end later than this day or instant")
    .option("--to <date>", "only periods that begin earlier than this day or instant")
    .option("--rules <file>", "the rules of the app, for their time zones and for the counters in Redis")
    .addOption(redisOption("the Redis for --rules"))
    .addOption(prefixOption())
    .addOption(ipv6PrefixOption())
    .addOption(
      new Option("--format <format>", "how to print the usage (default: table)")
        .choices(["table", "csv", "json"])
        .conflicts("json"),
    )
    .addOption(jsonOption())
    .addHelpText("after", USAGE_HELP)
    .action(async (files: string[], options) => {
      // Loaded on demand, because other commands need no logs.
      const { usage } = await import("./commands/usage.ts")
      done(await usage(files, { ...options, service: requireService(options) }, io))
    })
}

const USAGE_HELP = `
A period is listed whole if it overlaps the range from --from to --to. The day of --to is
not included. Days are in the time zone of the rule with --rules, and otherwise in UTC.
--rules with REDIS_URL adds what Redis has counted in the current periods.
A record that is read twice, such as from a compressed copy, counts once.

Example:
  sluice usage decisions.jsonl* --service shop --rules rules.yaml --from 2024-01-01

Exit codes:
  0  listed, or there is no usage
  1  the file has invalid rules
  2  invalid command line, or a file that cannot be read or contains no records
  3  Redis could not be reached`
