import type { Command } from "commander"
import { check } from "./commands/check.ts"
import { importRules } from "./commands/import.ts"
import { match } from "./commands/match.ts"
import { help } from "./help.ts"
import type { Io } from "./io.ts"
import {
  costOption,
  ipv6PrefixOption,
  jsonOption,
  maxBytesOption,
  prefixOption,
  serviceOption,
  unitOption,
} from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"
import { addRequestOptions } from "./request-options.ts"

/** Adds the commands of `sluice rules` that only read files. */
export function addFileCommands(rules: Command, io: Io, done: (outcome: CommandOutcome) => void): void {
  rules
    .command("check")
    .description(
      "Reports every problem in files of rules, with its file, line, path and the accepted values.",
    )
    .argument("<files...>", "YAML files, or JSON files if named .json; - is standard input")
    .addOption(maxBytesOption())
    .addOption(jsonOption())
    .addHelpText("after", help("sluice rules check rules.yaml", "no problems", "problems"))
    .action(async (files: string[], options) => done(await check(files, options, io)))

  const matching = rules
    .command("match")
    .description(
      "Shows which rules apply to a request, with their counters and Redis keys, and why other rules do not apply.",
    )
    .argument("<file>", "the rules; - is standard input")
    .addOption(serviceOption("only this service; or the service of a document without service_id"))
  addRequestOptions(matching)
    .addOption(costOption())
    .addOption(unitOption())
    .addOption(ipv6PrefixOption())
    .addOption(prefixOption())
    .addOption(maxBytesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      help(
        "sluice rules match rules.yaml --method POST --path /login --ip 192.0.2.7",
        "shown, even if no rule applies",
        "problems",
      ),
    )
    .action(async (file: string, options) => done(await match(file, options, io)))

  rules
    .command("import")
    .description(
      "Converts a file of Envoy's rate limit service to a file of rules, and reports what it cannot express.",
    )
    .argument("<file>", "the YAML file with domain and descriptors; - is standard input")
    .option("-o, --output <file>", "write to this file, as JSON if named .json; - is standard output")
    .addOption(maxBytesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      help("sluice rules import envoy.yaml -o rules.yaml", "imported", "some parts cannot be expressed"),
    )
    .action(async (file: string, options) => done(await importRules(file, options, io)))
}
