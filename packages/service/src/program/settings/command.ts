import { Command, Option } from "commander"
import { ROWS, type SettingName } from "./settings-table.ts"

/** The headings of the help, each with the first setting below it. */
const GROUPS: ReadonlyMap<SettingName, string> = new Map([
  ["grpc", "Addresses and TLS:"],
  ["rules", "Rules:"],
  ["redisCluster", "Counters:"],
  ["unknownServices", "Answers:"],
  ["maxMessageBytes", "Bounds:"],
  ["plainCalls", "Operation:"],
])

/**
 * Creates the command line. `write` receives the help, and `complain` receives commander's message about an invalid
 * command line. For an invalid command line, commander throws CommanderError.
 */
export function createCommand(
  version: string,
  write: (text: string) => void,
  complain: (text: string) => void,
): Command {
  const command = new Command("sluice-service")
    .description("Tells gateways, over gRPC and HTTP, whether to forward a request.")
    .version(version, "--version", "show the version")
    .helpOption("-h, --help", "show help")
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeOut: write, writeErr: complain })
  const secrets: string[] = []
  let heading = ""
  for (const [name, { flags, variable, says, otherwise }] of ROWS) {
    heading = GROUPS.get(name) ?? heading
    if (flags === undefined) {
      secrets.push(`  ${variable}, ${variable}_FILE\n      ${says}`)
    } else {
      const described = otherwise === undefined ? says : `${says} (default: ${otherwise})`
      command.addOption(new Option(flags, described).env(variable).preset("true").helpGroup(heading))
    }
  }
  return command.addHelpText("after", helpAfter(secrets))
}

function helpAfter(secrets: readonly string[]): string {
  return `
Secrets are read from these variables, or from the files that they name:
${secrets.join("\n")}

Write times with a unit: 50ms, 5s, 2m. A flag overrides its variable. Without REDIS_URL, counters are in the memory of this
process. Without SLUICE_TOKENS, every caller may register rules if gRPC and HTTP are on loopback; otherwise no caller may.
SIGTERM and SIGINT drain the service; a second signal ends it immediately. Exit codes: 0 drained, 1 failed, 2 invalid settings.

  $ sluice-service --rules rules.yaml
  $ REDIS_URL=redis://localhost:6379 sluice-service --table rules --grpc 0.0.0.0:50051`
}
