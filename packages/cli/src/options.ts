import { Argument, InvalidArgumentError, Option } from "commander"
import { MAX_BYTES } from "./rules-file.ts"

/** Returns the option `--json`, which every command has. */
export function jsonOption(): Option {
  return new Option("--json", "print JSON, including errors")
}

/** Returns the option `--service`, which may be repeated. */
export function serviceOption(description: string): Option {
  const collect = (text: string, earlier: readonly string[] = []): string[] => [
    ...earlier,
    parseService(text),
  ]
  return new Option("-s, --service <id>", `${description}; can be repeated`).argParser(collect)
}

/** Returns the argument `<service>` of a command for one service. */
export function serviceArgument(description: string): Argument {
  return new Argument("<service>", description).argParser(parseService)
}

/** Returns the option `--if-version` of commands that change the table. */
export function ifVersionOption(description: string): Option {
  return new Option("--if-version <n>", description).argParser(parseVersion).conflicts("force")
}

/** Returns the option `--max-bytes` of commands that read a file. */
export function maxBytesOption(): Option {
  const description = `refuse larger files, as fileRules does (default: ${MAX_BYTES})`
  return new Option("--max-bytes <n>", description).argParser(parseBytes)
}

/** Returns the option `--limit` of lists of the decision service. */
export function limitOption(): Option {
  return new Option(
    "--limit <n>",
    "maximum number of rules and clients, from 1 to 256 (default: 20)",
  ).argParser((text) => {
    if (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= 256) return Number(text)
    throw new InvalidArgumentError("Expected a whole number from 1 to 256.")
  })
}

/** Returns the option `--cost` of commands that only show how a request would be decided. */
export function costOption(): Option {
  return new Option("--cost <n>", "units that the request takes (default: 1)").argParser(parseVersion)
}

/** Returns the option `--unit`, which may be repeated. */
export function unitOption(): Option {
  const description =
    "how many of a unit the request takes, such as tokens=1500 (default: 1); can be repeated"
  const collect = (text: string, earlier?: ReadonlyMap<string, number>): ReadonlyMap<string, number> => {
    const [name = "", amount = ""] = text.split(/=(.*)/s)
    if (name === "") throw new InvalidArgumentError("Expected UNIT=NUMBER, such as tokens=1500.")
    return new Map([...(earlier ?? []), [name, parseVersion(amount)]])
  }
  return new Option("--unit <unit=n>", description).argParser(collect)
}

/** Returns the option `--prefix`, the prefix of what the app or the decision service has in Redis. */
export function prefixOption(owner = "of the Redis store"): Option {
  return new Option("--prefix <text>", `the prefix ${owner} (default: none)`).argParser(parsePrefix)
}

/** Returns the option `--ipv6-prefix`, which corresponds to a limiter's option `ipv6Prefix`. */
export function ipv6PrefixOption(): Option {
  const description =
    "length of the IPv6 networks that count as one client (default: 64); by network: default=64,2001:db8::/32=48"
  return new Option("--ipv6-prefix <bits>", description).argParser(parsePrefixes)
}

/** Rejects an empty service name, because it is probably a mistake: no service with this name can have rules. */
function parseService(text: string): string {
  if (text === "")
    throw new InvalidArgumentError("It is empty. If it comes from a shell variable, set the variable.")
  return text
}

function parseVersion(text: string): number {
  const version = /^\d{1,15}$/.test(text) ? Number(text) : undefined
  if (version === undefined) throw new InvalidArgumentError("Expected a whole number, 0 or more.")
  return version
}

function parsePrefix(text: string): string {
  if (/^[\x20-\x7e]{0,64}$/.test(text) && !/[{}]/.test(text)) return text
  throw new InvalidArgumentError("Expected at most 64 printable ASCII characters, except { and }.")
}

function parsePrefixes(text: string): number | Record<string, number> {
  if (!text.includes("=")) return parseBits(text)
  return Object.fromEntries(
    text.split(",").map((each) => {
      const at = each.lastIndexOf("=")
      return [each.slice(0, at).trim(), parseBits(each.slice(at + 1))]
    }),
  )
}

function parseBits(text: string): number {
  const bits = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (bits >= 1 && bits <= 128) return bits
  throw new InvalidArgumentError(
    "Expected a whole number from 1 to 128, or a number for each network, such as default=64,2001:db8::/32=48.",
  )
}

function parseBytes(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new InvalidArgumentError("Expected a whole number, 1 or more.")
}
