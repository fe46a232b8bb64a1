import { isIP } from "node:net"
import type { RequestFacts } from "@sluice/core"
import { type Command, InvalidArgumentError, Option } from "commander"

/** A name and a value, as given by `--header name=value`. */
type Pair = readonly [name: string, value: string]

/** The request that a command's options describe. */
export interface RequestOptions {
  readonly method?: string
  readonly path?: string
  readonly route?: string
  readonly ip?: string
  readonly header?: readonly Pair[]
  readonly query?: readonly Pair[]
  readonly body?: readonly Pair[]
  readonly param?: readonly Pair[]
  readonly cookie?: readonly Pair[]
  readonly field?: readonly Pair[]
}

/** Adds the options that describe a request to a command. Returns the command. */
export function addRequestOptions(command: Command): Command {
  return command
    .option("--method <method>", "the method, such as POST")
    .option("--path <path>", "the path as it arrives, such as /login?next=/")
    .option("--route <pattern>", "the framework's route, such as /users/:id")
    .addOption(new Option("--ip <address>", "the client's address").argParser(parseAddress))
    .addOption(pairOption("--header <name=value>", "a header field"))
    .addOption(pairOption("--query <name=value>", "a query parameter, in addition to those of --path"))
    .addOption(pairOption("--body <path=value>", "a member of the body, such as user.email=a@example.com"))
    .addOption(pairOption("--param <name=value>", "a parameter of the route"))
    .addOption(pairOption("--cookie <name=value>", "a cookie"))
    .addOption(pairOption("--field <name=value>", "a field that the app's own option fields reads"))
}

/** Returns the facts of the request, in the form in which adapters provide them. */
export function factsOf(options: RequestOptions): RequestFacts {
  const { method, path, route, ip, header = [], query = [], body = [], param = [], cookie } = options
  return {
    method,
    url: query.length === 0 ? path : withQuery(path ?? "/", query),
    route,
    remoteAddress: ip,
    headers: listed(header.map(([name, value]) => [name.toLowerCase(), value])),
    params: listed(param),
    body: nested(body),
    // Without this option, cookies are read from the header.
    ...(cookie !== undefined && { cookies: listed(cookie) }),
  }
}

function withQuery(path: string, query: readonly Pair[]): string {
  return `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams(query.map(([...pair]) => pair))}`
}

/** Returns the value of each name, or an array of values for a repeated name. */
function listed(pairs: readonly Pair[]): Record<string, string | readonly string[]> {
  const values: Record<string, string | readonly string[]> = Object.create(null)
  for (const [name, value] of pairs) {
    const earlier = values[name]
    values[name] = earlier === undefined ? value : [earlier, value].flat()
  }
  return values
}

/** Returns an object with the value at each dotted path. */
function nested(pairs: readonly Pair[]): object {
  const root: Record<string, unknown> = Object.create(null)
  for (const [path, value] of pairs) {
    const keys = path.split(".")
    const last = keys.pop() as string
    let holder = root
    for (const key of keys) {
      if (typeof holder[key] !== "object") holder[key] = Object.create(null)
      holder = holder[key] as Record<string, unknown>
    }
    holder[last] = value
  }
  return root
}

function pairOption(flags: string, description: string): Option {
  return new Option(flags, `${description}; can be repeated`).argParser(
    (text: string, earlier: readonly Pair[] = []): readonly Pair[] => [...earlier, parsePair(text)],
  )
}

function parsePair(text: string): Pair {
  const at = text.indexOf("=")
  if (at < 1) throw new InvalidArgumentError("Expected a name, =, and a value, such as name=value.")
  return [text.slice(0, at), text.slice(at + 1)]
}

function parseAddress(text: string): string {
  if (isIP(text) === 0) throw new InvalidArgumentError("Expected an IPv4 or IPv6 address.")
  return text
}
