import { Command, Option } from "commander"
import manifest from "../package.json" with { type: "json" }
import { addClientsCommand } from "./clients-program.ts"
import { createTable } from "./commands/create-table.ts"
import { diff } from "./commands/diff.ts"
import { list } from "./commands/list.ts"
import { pull } from "./commands/pull.ts"
import { push } from "./commands/push.ts"
import { remove } from "./commands/remove.ts"
import { addFileCommands } from "./files-program.ts"
import { help } from "./help.ts"
import type { Io } from "./io.ts"
import { ifVersionOption, jsonOption, maxBytesOption, serviceArgument, serviceOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"
import { addReplayCommand } from "./replay-program.ts"
import { addSuggestCommand } from "./suggest-program.ts"
import type { TableOptions } from "./table.ts"
import { UsageError } from "./usage-error.ts"
import { addUsageCommand } from "./usage-program.ts"

/** Called with the outcome of the command. */
type OnOutcome = (outcome: CommandOutcome) => void

/**
 * Creates the command line: `sluice rules check`, `push` and so on, and `sluice clients`. `write` receives help texts.
 * For an invalid command line, `complain` receives commander's message, and commander throws CommanderError.
 */
export function createProgram(
  io: Io,
  done: OnOutcome,
  write: (text: string) => void,
  complain: (text: string) => void,
): Command {
  const program = new Command("sluice")
    .description("Manages the rate limiting rules of Sluice, and shows its clients and their usage.")
    .version(manifest.version, "--version", "show the version")
    .exitOverride()
    .configureOutput({
      writeOut: write,
      writeErr: complain,
      outputError: (text, put) => put(text + hintAt(text, rules)),
    })
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
  const rules = program
    .command("rules")
    .description("Checks files of rules, and registers, compares and lists rules in a DynamoDB table.")
    .helpCommand(false)
    .addHelpText("after", RULES_HELP)

  addFileCommands(rules, io, done)
  addReplayCommand(rules, io, done)
  addSuggestCommand(rules, io, done)

  tableCommand(
    rules,
    "push",
    "Registers the rules of a file in the table, unless the table has changed since they were pulled.",
  )
    .argument("<file>", "the rules; - is standard input")
    .addOption(serviceOption("only this service; or the service of a document without service_id"))
    .addOption(
      ifVersionOption("the version that the table must have, 0 for none (default: the file's version)"),
    )
    .option("--force", "accept any version in the table")
    .option("--write", "write the new versions into the file")
    .option("--dry-run", "show what would be registered, but change nothing")
    .addOption(maxBytesOption())
    .addHelpText(
      "after",
      help(
        "sluice rules push rules.yaml --table rules --write",
        "registered",
        "problems, or a conflict",
        PUSH_HELP,
      ),
    )
    .action(async (file: string, options) => done(await push(file, requireTable(options), io)))

  tableCommand(rules, "pull", "Shows the rules in the table as a file that can be edited and pushed.")
    .addOption(serviceOption("only this service"))
    .option("-o, --output <file>", "write to this file, as JSON if named .json; - is standard output")
    .addHelpText(
      "after",
      help(
        "sluice rules pull --table rules --service checkout -o rules.yaml",
        "pulled",
        "not in the table, or partly invalid",
      ),
    )
    .action(async (options) => done(await pull(requireTable(options), io)))

  tableCommand(rules, "diff", "Compares the rules of a file with the table: shows what push would change.")
    .argument("<file>", "the rules; - is standard input")
    .addOption(serviceOption("only this service; or the service of a document without service_id"))
    .addOption(maxBytesOption())
    .addHelpText(
      "after",
      help("sluice rules diff rules.yaml --table rules", "the same", "different, or problems", DIFF_HELP),
    )
    .action(async (file: string, options) => done(await diff(file, requireTable(options), io)))

  tableCommand(rules, "list", "Lists the services in the table with version, number of rules and problems.")
    .addHelpText("after", help("sluice rules list --table rules", "no problems", "problems"))
    .action(async (options) => done(await list(requireTable(options), io)))

  tableCommand(rules, "remove", "Removes the rules of a service from the table.")
    .addArgument(serviceArgument("the service whose rules are removed"))
    .addOption(ifVersionOption("the version that the table must have"))
    .option("--force", "accept any version in the table")
    .addHelpText(
      "after",
      help(
        "sluice rules remove checkout --table rules --if-version 8",
        "removed, or not in the table",
        "a conflict",
      ),
    )
    .action(async (service: string, options) => done(await remove(service, requireTable(options), io)))

  tableCommand(
    rules,
    "create-table",
    "Creates a table for rules with on-demand billing, and waits until it is ready.",
  )
    .addOption(
      new Option(
        "--key-type <type>",
        "type of the service ids: S for strings, N for numbers (default: S)",
      ).choices(["S", "N"]),
    )
    .addHelpText("after", help("sluice rules create-table --table rules", "ready"))
    .action(async (options) => done(await createTable(requireTable(options), io)))

  const clients = addClientsCommand(program, io, done)
  addUsageCommand(program, io, done)
  for (const each of [program, rules, clients]) addHelpCommand(each)
  return program
}

/**
 * Returns a hint for a command without `rules`, such as `sluice check`. Commander itself searches only the commands of
 * one level.
 */
function hintAt(text: string, rules: Command): string {
  const unknown = /^error: unknown command '(.*)'\n$/.exec(text)?.[1]
  return rules.commands.some((each) => each.name() === unknown) ? `(Did you mean rules ${unknown}?)\n` : ""
}

/**
 * Adds a help command for nested commands, such as `sluice help rules check`. Commander's own help command accepts only
 * one name.
 */
function addHelpCommand(parent: Command): void {
  parent
    .command("help")
    .description("Shows the help of a command, as --help does.")
    .argument("[command...]", "the name of the command")
    .action(async (names: readonly string[]) => {
      let command = parent
      for (const name of names) {
        const found = command.commands.find((each) => each.name() === name)
        // This call reports the unknown command and suggests a similar command.
        if (found === undefined && command.commands.length > 0) {
          await command.parseAsync([name], { from: "user" })
        }
        command = found ?? command
      }
      command.help()
    })
}

const RULES_HELP = `
Example:
  sluice rules pull --table rules --service checkout -o checkout.yaml
  sluice rules check checkout.yaml
  sluice rules diff checkout.yaml --table rules
  sluice rules push checkout.yaml --table rules --write

"sluice rules push --help" shows more about push. Every command has --help.`

const PUSH_HELP = `
The version in the file is the one that was last pulled. Without a version, the service
must be new. If the table has another version, nothing is registered. --write updates
the versions in the file and keeps its comments.`

const DIFF_HELP = `
+ is only in the file, - only in the table, ~ differs: table -> file.
Services that are only in the table are not shown.`

function tableCommand(rules: Command, name: string, description: string): Command {
  return rules
    .command(name)
    .description(description)
    .option("-t, --table <name>", "the DynamoDB table (required)")
    .option(
      "--region <region>",
      "its AWS region (default: as configured for the AWS SDK, such as by AWS_REGION)",
    )
    .option("--endpoint <url>", "URL of another server, such as http://localhost:8000 for a local one")
    .addOption(jsonOption())
}

/**
 * Throws if `--table` is missing. If the option were mandatory, commander would report that it is missing before it
 * reports a misspelled `--tabel`.
 */
function requireTable<T extends Partial<TableOptions>>(options: T): T & TableOptions {
  const { table } = options
  if (table === undefined) throw new UsageError("--table is missing: give the name of the DynamoDB table")
  return { ...options, table }
}
