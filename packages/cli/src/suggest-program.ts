import { type Command, InvalidArgumentError, Option } from "commander"
import { help } from "./help.ts"
import type { Io } from "./io.ts"
import { addLogOptions } from "./log-options.ts"
import { jsonOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"

/** Adds `sluice rules suggest`. */
export function addSuggestCommand(rules: Command, io: Io, done: (outcome: CommandOutcome) => void): void {
  const command = rules
    .command("suggest")
    .description("Suggests limits from access logs, and writes them as rules in shadow mode.")
    .argument("<logs...>", "access logs, also compressed with gzip; - is standard input")
    .addOption(
      new Option("--by <fields>", "the fields that tell clients apart, with commas")
        .argParser(parseBy)
        .default(["ip"], "ip"),
    )
    .addOption(
      new Option(
        "--windows <windows>",
        "the windows, with commas; day, week, month and year are calendar periods",
      )
        .argParser((text) => text.split(","))
        .default(["1s", "1m", "1h"], "1s,1m,1h"),
    )
    .option("--time-zone <zone>", "the time zone of calendar periods", "UTC")
    .addOption(
      new Option("--refuse-at-most <share>", "the share of clients that the tight candidate may refuse")
        .argParser(parseShare)
        .default(0.001, "0.1%"),
    )
    .option(
      "--algorithm <name>",
      "how the rules count: sliding-window, fixed-window, sliding-window-strict, sliding-log",
      "sliding-window",
    )
    .option(
      "--match-from <file>",
      "also suggest limits for the requests that each match in this rules file selects",
    )
    .option(
      "--capacity <limit>",
      "what the whole service can handle, such as 500/s: adds a rule with this limit",
    )
    .addOption(
      new Option(
        "--max-clients <n>",
        "count at most this many clients, and a sample of them if there are more",
      )
        .argParser(parseMaxClients)
        .default(2_000_000),
    )
    .option("--hash-keys", "show hashes instead of clients")
    .option(
      "-o, --output <file>",
      "write the rules to this new file, as JSON if named .json; - is standard output",
    )
  addLogOptions(command)
    .addOption(jsonOption())
    .addHelpText(
      "after",
      help(
        "sluice rules suggest access.log.*.gz --by ip --windows 1s,1m,1h --refuse-at-most 0.1% -o rules.yaml",
        "suggested, or there are no candidates",
        "problems in the file of --match-from",
        SUGGEST_HELP,
      ),
    )
    .action(async (logs: string[], options) => {
      // Loaded on demand, because other commands need neither log formats nor statistics.
      const { suggest } = await import("./commands/suggest.ts")
      done(await suggest(logs, options, io))
    })
}

const SUGGEST_HELP = `
Candidates for each window:
  careful   1.5 times the highest peak of all clients except the top 0.01%
  balanced  where the peaks of ordinary clients end, if the log shows such a point
  tight     the smallest limit that refuses at most --refuse-at-most of the clients
The balanced one becomes the rule if it refuses at most --refuse-at-most; otherwise the careful
one, or the tight one for a path that looks like a login.
Files are read twice: the second time to count the refused requests.`

function parseBy(text: string): string[] {
  const fields = text.split(",").map((each) => each.trim())
  if (fields.every((each) => each !== "")) return fields
  throw new InvalidArgumentError(
    "Expected a field such as ip or header:x-api-key, or several, separated by commas.",
  )
}

function parseShare(text: string): number {
  const parts = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)
  const percent = parts === null ? Number.NaN : Number(parts[1])
  if (percent < 100) return percent / 100
  throw new InvalidArgumentError("Expected a percentage below 100%, such as 0.1%.")
}

const MOST_CLIENTS = 10_000_000

function parseMaxClients(text: string): number {
  const most = /^\d{1,8}$/.test(text) ? Number(text) : 0
  if (most >= 1_000 && most <= MOST_CLIENTS) return most
  throw new InvalidArgumentError(`Expected a whole number from 1000 to ${MOST_CLIENTS}.`)
}
