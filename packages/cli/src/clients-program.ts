import { type Command, Option } from "commander"
import { type ClientsOptions, change, show } from "./commands/clients.ts"
import { top, watchTop } from "./commands/top.ts"
import type { Io } from "./io.ts"
import { jsonOption, limitOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"
import { UsageError } from "./usage-error.ts"

/** Adds the commands of `sluice clients`, which call the decision service. Returns it. */
export function addClientsCommand(
  program: Command,
  io: Io,
  done: (outcome: CommandOutcome) => void,
): Command {
  const clients = program
    .command("clients")
    .description("Lists, shows, resets, blocks and unblocks clients in the decision service.")
    .helpCommand(false)
    .addHelpText("after", CLIENTS_HELP)

  clientCommand(clients, "show", "Shows what a rule has counted for a client, and why it refuses the client.")
    .addHelpText("after", help("sluice clients show --service checkout per-user ada", "shown"))
    .action(async (rule: string, client: string[], options) =>
      done(await show(rule, client, requireService(options), io)),
    )

  clientCommand(clients, "reset", "Resets what a rule has counted for a client, and ends a block.")
    .addHelpText("after", help("sluice clients reset --service checkout per-user ada", "reset"))
    .action(async (rule: string, client: string[], options) =>
      done(await change("ResetClient", rule, client, requireService(options), io)),
    )

  clientCommand(clients, "block", "Makes a rule refuse a client for some time.")
    .option("--for <time>", 'how long, such as "1 hour" or 15m (required)')
    .addHelpText(
      "after",
      help('sluice clients block --service checkout per-user ada --for "1 hour"', "blocked"),
    )
    .action(async (rule: string, client: string[], options) => {
      const { for: time, ...others } = requireService(options)
      if (time === undefined)
        throw new UsageError('--for is missing: give the time to block the client, such as --for "1 hour"')
      done(await change("BlockClient", rule, client, { ...others, for: time }, io))
    })

  clientCommand(clients, "unblock", "Ends the block of a client, but keeps what was counted.")
    .addHelpText("after", help("sluice clients unblock --service checkout per-user ada", "unblocked"))
    .action(async (rule: string, client: string[], options) =>
      done(await change("UnblockClient", rule, client, requireService(options), io)),
    )

  serviceCommand(clients, "top", "Lists the clients that the rules of a service refuse most now.")
    .option("--rule <name>", "only this rule (default: all rules)")
    .addOption(limitOption())
    .addOption(new Option("--watch", "draw the list again every 2 seconds, until Ctrl+C").conflicts("json"))
    .addHelpText("after", help("sluice clients top --service checkout --watch", "listed"))
    .action(async (options) => {
      const list = options.watch === true ? watchTop : top
      done(await list(requireService(options), io))
    })

  return clients
}

function clientCommand(clients: Command, name: string, description: string): Command {
  return serviceCommand(clients, name, description)
    .argument("<rule>", "the name of the rule")
    .argument(
      "[client...]",
      "the values of the rule's fields: one for most rules, none if it counts the whole service",
    )
}

function serviceCommand(clients: Command, name: string, description: string): Command {
  return clients
    .command(name)
    .description(description)
    .option("-s, --service <id>", "the service that the rule belongs to (required)")
    .option(
      "--url <url>",
      "the HTTP address of the decision service (default: SLUICE_URL, or http://127.0.0.1:8080)",
    )
    .addOption(jsonOption())
}

/**
 * Throws if `--service` is missing. If the option were mandatory, commander would report that it is missing before it
 * reports a misspelled `--servic`.
 */
function requireService<T extends Partial<ClientsOptions> & { readonly for?: string }>(
  options: T,
): T & ClientsOptions {
  const { service = "" } = options
  if (service === "") throw new UsageError("--service is missing: give the service that the rule belongs to")
  return { ...options, service }
}

function help(example: string, ok: string): string {
  return `
Example:
  ${example}

Exit codes:
  0  ${ok}
  1  refused by the service: unknown rule, invalid client or invalid token
  2  invalid command line
  3  the service could not be reached, or its store did not respond`
}

const CLIENTS_HELP = `
Example:
  export SLUICE_URL=http://limiter.internal:8080 SLUICE_TOKEN=...
  sluice clients show --service checkout per-user ada
  sluice clients reset --service checkout per-user ada

SLUICE_TOKEN is the token that may register the rules of the service.`
