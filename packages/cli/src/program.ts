import { readFileSync } from "node:fs"
import { Command, Option } from "commander"
import { addClientsCommand } from "./clients-program.ts"
import { check } from "./commands/check.ts"
import { createTable } from "./commands/create-table.ts"
import { diff } from "./commands/diff.ts"
import { list } from "./commands/list.ts"
import { pull } from "./commands/pull.ts"
import { push } from "./commands/push.ts"
import { remove } from "./commands/remove.ts"
import type { Io } from "./io.ts"
import { ifVersionOption, jsonOption, maxBytesOption, serviceArgument, serviceOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"
import type { TableOptions } from "./table.ts"
import { UsageError } from "./usage-error.ts"

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
    .description(
      "Works with the rate limiting rules of Sluice, and with the clients of its decision service.",
    )
    .version(readVersion(), "--version", "show the version")
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

  rules
    .command("check")
    .description("Tells every problem of rules files: file, line, path and what would be accepted.")
    .argument("<files...>", "files of YAML, or of JSON when named .json; - is standard input")
    .addOption(maxBytesOption())
    .addOption(jsonOption())
    .addHelpText("after", help("sluice rules check rules.yaml", "no problems", "problems"))
    .action(async (files: string[], options) => done(await check(files, options, io)))

  tableCommand(
    rules,
    "push",
    "Registers the rules of a file in the table, unless somebody else has changed them there.",
  )
    .argument("<file>", "the rules; - is standard input")
    .addOption(serviceOption("only this service, or whose rules a document without service_id has"))
    .addOption(ifVersionOption("the version that must be in the table; 0: none (default: the file's)"))
    .option("--force", "whatever version is in the table")
    .option("--write", "write the new versions into the file")
    .option("--dry-run", "only tell what would be done")
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
    .option(
      "-o, --output <file>",
      "write them to this file, as JSON when it is named .json; - is standard output",
    )
    .addHelpText(
      "after",
      help(
        "sluice rules pull --table rules --service checkout -o rules.yaml",
        "pulled",
        "not there, or not all of it readable",
      ),
    )
    .action(async (options) => done(await pull(requireTable(options), io)))

  tableCommand(rules, "diff", "Compares the rules of a file with those in the table: what push would change.")
    .argument("<file>", "the rules; - is standard input")
    .addOption(serviceOption("only this service, or whose rules a document without service_id has"))
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
    .addArgument(serviceArgument("whose rules"))
    .addOption(ifVersionOption("the version that must be in the table"))
    .option("--force", "whatever version is in the table")
    .addHelpText(
      "after",
      help(
        "sluice rules remove checkout --table rules --if-version 8",
        "removed, or not there",
        "a conflict",
      ),
    )
    .action(async (service: string, options) => done(await remove(service, requireTable(options), io)))

  tableCommand(
    rules,
    "create-table",
    "Creates a table for rules, billed on demand, and waits until it can be used.",
  )
    .addOption(
      new Option("--key-type <type>", "S: services are texts; N: numbers (default: S)").choices(["S", "N"]),
    )
    .addHelpText("after", help("sluice rules create-table --table rules", "ready"))
    .action(async (options) => done(await createTable(requireTable(options), io)))

  const clients = addClientsCommand(program, io, done)
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

/** Adds `sluice help rules check`, as in other programs. Commander's own help command accepts only one name. */
function addHelpCommand(parent: Command): void {
  parent
    .command("help")
    .description("Shows the help of a command, as --help does.")
    .argument("[command...]", "which")
    .action(async (names: readonly string[]) => {
      let command = parent
      for (const name of names) {
        const found = command.commands.find((each) => each.name() === name)
        // This reports the unknown command and suggests a similar one.
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

"sluice rules push --help" tells more of push, and so on.`

const PUSH_HELP = `
The file's version is the one that its owner last pulled; without one, the service
must be new. When the table has another version, nothing is registered. --write keeps
the file up to date, comments and all.`

const DIFF_HELP = `
+ is only in the file, - only in the table, ~ differs: table -> file.
Services that are only in the table are not told.`

function tableCommand(rules: Command, name: string, description: string): Command {
  return rules
    .command(name)
    .description(description)
    .option("-t, --table <name>", "the DynamoDB table; always needed")
    .option("--region <region>", "its region (default: as the AWS SDK finds it, AWS_REGION for one)")
    .option("--endpoint <url>", "another server, such as http://localhost:8000 for one on this machine")
    .addOption(jsonOption())
}

/** Commander would report a missing mandatory option before it reports the misspelled `--tabel`. */
function requireTable<T extends Partial<TableOptions>>(options: T): T & TableOptions {
  const { table } = options
  if (table === undefined) throw new UsageError("say which DynamoDB table with --table")
  return { ...options, table }
}

/** Returns the end of a command's help: details, an example, and the meaning of the exit codes. */
function help(example: string, ok: string, problems?: string, more = ""): string {
  const codes = [
    `  0  ${ok}`,
    ...(problems === undefined ? [] : [`  1  ${problems}`]),
    "  2  wrong usage, or a file that cannot be read",
    ...(example.includes("--table") ? ["  3  the table could not be reached, read or written"] : []),
  ]
  return `${more === "" ? "" : `${more}\n`}
Example:
  ${example}

Exit codes:
${codes.join("\n")}`
}

function readVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  )
  return manifest.version
}
