import { type Command, Option } from "commander"
import type { ClientAction, TopQuery } from "./clients/clients-backend.ts"
import { type PlaceOptions, withClients } from "./clients/open-clients.ts"
import { change, show } from "./commands/clients.ts"
import { top, watchTop } from "./commands/top.ts"
import type { Io } from "./io.ts"
import { ipv6PrefixOption, jsonOption, limitOption, prefixOption } from "./options.ts"
import type { CommandOutcome } from "./outcome.ts"
import { UsageError } from "./usage-error.ts"

/** Options of a command for one client. */
interface ClientOptions extends PlaceOptions {
  readonly service?: string
  readonly for?: string
  readonly units?: string
}

/** Options of `sluice clients top`. */
interface TopOptions extends PlaceOptions, TopQuery {
  readonly watch?: true
}

/** Adds the commands of `sluice clients`, which call the decision service or use the Redis of an app. Returns it. */
export function addClientsCommand(
  program: Command,
  io: Io,
  done: (outcome: CommandOutcome) => void,
): Command {
  const clients = program
    .command("clients")
    .description("Lists, shows, resets, blocks and unblocks clients, and grants them units.")
    .helpCommand(false)
    .addHelpText("after", CLIENTS_HELP)

  clientCommand(clients, "show", "Shows what a rule has counted for a client, and why it refuses the client.")
    .addHelpText("after", help("sluice clients show --service checkout per-user ada", "shown"))
    .action(async (rule: string, client: string[], options: ClientOptions) => {
      const service = requireService(options)
      done(await withClients(options, io, (found) => show({ service, rule, client }, found)))
    })

  const changing =
    (action: ClientAction) => async (rule: string, client: string[], options: ClientOptions) => {
      const service = requireService(options)
      const amount = AMOUNTS[action]?.(options)
      done(
        await withClients(options, io, (found) => change(action, { service, rule, client }, amount, found)),
      )
    }

  clientCommand(clients, "reset", "Deletes counts and granted units of a client, and ends a block.")
    .addHelpText("after", help("sluice clients reset --service checkout per-user ada", "reset"))
    .action(changing("reset"))

  clientCommand(clients, "block", "Makes a rule refuse a client for some time.")
    .option("--for <time>", 'how long, such as "1 hour" or 15m; does not shorten a block (required)')
    .addHelpText(
      "after",
      help('sluice clients block --service checkout per-user ada --for "1 hour"', "blocked"),
    )
    .action(changing("block"))

  clientCommand(clients, "unblock", "Ends the block of a client, but keeps what was counted.")
    .addHelpText("after", help("sluice clients unblock --service checkout per-user ada", "unblocked"))
    .action(changing("unblock"))

  clientCommand(clients, "grant", "Grants a client more units, until the period of a rule with per ends.")
    .option("--units <number>", "how many; a negative number takes granted units back (required)")
    .addHelpText("after", help("sluice clients grant --service checkout monthly ada --units 5000", "granted"))
    .action(changing("grant"))

  serviceCommand(
    clients,
    "top",
    "Lists the clients that rules refuse most now.",
    "only this service; the decision service needs it",
  )
    .addOption(redisOption("list what apps share in this Redis"))
    .addOption(prefixOption("of redisActivity"))
    .option("--rule <name>", "only this rule (default: all rules)")
    .addOption(limitOption())
    .addOption(new Option("--watch", "draw the list again every 2 seconds, until Ctrl+C").conflicts("json"))
    .addHelpText("after", help("sluice clients top --service checkout --watch", "listed"))
    .action(async ({ rule, limit, watch, ...options }: TopOptions) => {
      const service = options.service === undefined ? undefined : requireService(options)
      const list = watch === true ? watchTop : top
      done(await withClients(options, io, (found) => list({ service, rule, limit }, found, io), "list"))
    })

  return clients
}

function clientCommand(clients: Command, name: string, description: string): Command {
  const command = serviceCommand(
    clients,
    name,
    description,
    "the service that the rule belongs to (required)",
  )
    .argument("<rule>", "the name of the rule")
    .argument(
      "[client...]",
      "the values of the rule's fields: one for most rules, none if it counts the whole service",
    )
    .addOption(new Option("--rules <file>", "use the Redis of an app with these rules").conflicts("url"))
    .addOption(redisOption("the Redis for --rules"))
    .addOption(prefixOption())
    .addOption(ipv6PrefixOption())
    .option("--hash-keys", "the app's hashKeys is true; SLUICE_HASH_SECRET is its hashSecret")
    .option("--no-hash-keys", "the app's hashKeys is false")
  if (name !== "show" && name !== "grant") return command
  const anchor = "the first day of the client's periods, if it is a function in the app (default: the rule's)"
  return command.addOption(new Option("--anchor <day>", anchor).conflicts("url"))
}

function serviceCommand(clients: Command, name: string, description: string, service: string): Command {
  return clients
    .command(name)
    .description(description)
    .option("-s, --service <id>", service)
    .option(
      "--url <url>",
      "the HTTP address of the decision service (default: SLUICE_URL, or http://127.0.0.1:8080)",
    )
    .addOption(jsonOption())
}

/** Returns the option `--redis`. */
export function redisOption(redis: string): Option {
  const shown = "default: REDIS_URL, in which other users cannot see a password"
  return new Option("--redis <url>", `${redis} (${shown})`).conflicts("url")
}

/**
 * Throws if `--service` is missing. If the option were mandatory, commander would report that it is missing before it
 * reports a misspelled `--servic`.
 */
export function requireService({ service = "" }: { readonly service?: string | undefined }): string {
  if (service === "") throw new UsageError("--service is missing: give the name of the service")
  return service
}

/** Throws if the length of a block is missing or has no unit. The limiter would ask for milliseconds, which only code can give. */
function requireTime({ for: time }: Pick<ClientOptions, "for">): string {
  if (time === undefined)
    throw new UsageError('--for is missing: give the time to block the client, such as --for "1 hour"')
  if (/^\s*\d+\s*$/.test(time))
    throw new UsageError(`--for ${time} has no unit: give one, such as "1 hour" or 15m`)
  return time
}

/** Throws if the number of units is missing or wrong. */
function requireUnits({ units }: Pick<ClientOptions, "units">): string {
  if (units === undefined)
    throw new UsageError("--units is missing: give the units to grant, such as --units 5000")
  if (!/^-?[1-9]\d{0,14}$/.test(units))
    throw new UsageError(
      `--units ${units} is not a number of units: give a whole number of up to 15 digits, such as 5000, or -5000 to take units back`,
    )
  return units
}

/** How an action takes its length or units from the options. */
const AMOUNTS: Readonly<Partial<Record<ClientAction, (options: ClientOptions) => string>>> = {
  block: requireTime,
  grant: requireUnits,
}

function help(example: string, ok: string): string {
  return `
Example:
  ${example}

Exit codes:
  0  ${ok}
  1  refused by the service: unknown rule, invalid client or invalid token; or the file has invalid rules
  2  invalid command line, a file that cannot be read, or a rule or client that does not fit the file
  3  the service or its store, or Redis, could not be reached
`
}

const CLIENTS_HELP = `
Example:
  export SLUICE_URL=http://limiter.internal:8080 SLUICE_TOKEN=...
  sluice clients show --service checkout per-user ada
  sluice clients reset --service checkout per-user ada

SLUICE_TOKEN is the token that may register the rules of the service.

For an app without the decision service:
  export REDIS_URL=redis://:password@redis.internal:6379
  sluice clients show --rules rules.yaml --service checkout per-user ada
  sluice clients top`
