import type { IncomingMessage } from "node:http"
import { serviceName } from "../contract/service-name.ts"
import type { KnownFacts } from "../deciding/asked-request.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"

/** The request of a client about which a gateway asks. */
export interface GatewayQuestion {
  readonly service: string
  /** The client's request, as a caller of ShouldForwardRequest would describe it. */
  readonly known: KnownFacts
}

/** The parts of a check's path, such as "/check/shop?refused=403" or "/check/shop/users/7". */
export interface CheckPath {
  /** The service, still percent-encoded. */
  readonly service: string
  /** The status of a refused check. Undefined if the check has the same status as the response for the client. */
  readonly refused: number | undefined
  /** The target of the client's request. Undefined if the path ends with the service. */
  readonly target: string | undefined
}

/** The method and the target of a client's request. */
interface Described {
  readonly method: string
  readonly target: string
}

const FORWARDED_TARGET = "X-Forwarded-Uri"
/** Pairs of headers with which gateways describe the method and target of a request. Spelled as in error messages. */
const PAIRS = [
  ["X-Original-Method", "X-Original-URI"],
  ["X-Original-Method", "X-Original-URL"],
  ["X-Forwarded-Method", FORWARDED_TARGET],
] as const
const NAMES = [...new Set(PAIRS.flat())]

/** Whether a request is a check of a gateway. */
export function isCheck(url: string): boolean {
  return /^\/check(?:[/?]|$)/.test(url)
}

/** Returns the parts of a check's path. Throws StatusError if the path is invalid. */
export function readCheckPath(url: string): CheckPath {
  const [, service = "", rest = ""] = /^\/check\/?([^/?]*)(.*)$/s.exec(url) ?? []
  // If the path contains the client's target, the query comes from the client too, so it must not set `refused`.
  if (rest.startsWith("/")) return { service, refused: undefined, target: rest }
  // Ignore other parameters, because Caddy may add the client's query.
  const statuses = new URLSearchParams(rest).getAll("refused")
  if (statuses.length === 0) return { service, refused: undefined, target: undefined }
  const text = statuses.join(",")
  if (/^[45]\d\d$/.test(text)) return { service, refused: Number(text), target: undefined }
  throw invalidArgument({
    field: "refused",
    description: `${JSON.stringify(text)} is not a status from 400 to 599`,
  })
}

/**
 * Returns the request about which a gateway asks. `clientOf` extracts the client's address from X-Forwarded-For.
 * Throws StatusError unless the client's request is described exactly once, and completely.
 *
 * A gateway sets some of the headers and passes the others on as the client sent them. This function does not know
 * which headers the gateway sets. If one description could override another, a client could hide its path or method
 * by adding a header.
 */
export function readGatewayQuestion(
  { service: encoded, target }: CheckPath,
  request: IncomingMessage,
  clientOf: (forwardedFor: string) => string | undefined,
): GatewayQuestion {
  const service = serviceOf(encoded)
  const { method, target: url } = describedBy(request, target)
  const headers = { ...request.headers }
  const { "x-forwarded-for": forwardedFor, "x-forwarded-host": host } = headers
  if (!forwardedFor) throw wrong("X-Forwarded-For is missing; send it with the address of the client.")
  // Use X-Forwarded-Host only if the gateway sets X-Forwarded-Uri, because such a gateway also sets the host.
  if (headers[FORWARDED_TARGET.toLowerCase()] && typeof host === "string") headers.host = host
  const ip = clientOf(String(forwardedFor))
  return { service, known: { ip, method, url, headers, query: queryOf(url) } }
}

function serviceOf(encoded: string): string {
  if (encoded === "") throw wrong("The path has no service; send /check/<service>.")
  let service: string
  try {
    service = decodeURIComponent(encoded)
  } catch {
    throw wrong("The service in the path is not valid: it has a % that does not start an escape.")
  }
  return serviceName({ serviceId: 0, service })
}

function describedBy(
  { method: own = "", headersDistinct: headers }: IncomingMessage,
  after: string | undefined,
): Described {
  const given = NAMES.filter((name) => headerOf(headers, name) !== undefined)
  const places = after === undefined ? given : [...given, "the path after the service"]
  if (given.length > 2 || (after !== undefined && given.length > 0)) {
    throw wrong(
      `${places.join(", ")} describe more than one request; let the gateway remove the headers that it does not set.`,
    )
  }
  if (after !== undefined) return { method: own, target: after }
  const [first] = given
  if (first === undefined) {
    throw wrong(
      `The client's request is not described; send ${PAIRS[0].join(" and ")}, ${PAIRS[2].join(" and ")}, or its path after the service.`,
    )
  }
  const pair = PAIRS.find((names) => names.every((name) => given.includes(name)))
  if (pair === undefined) {
    const missing = PAIRS.find((names) => names.includes(first as never))?.find((name) => name !== first)
    throw wrong(`${missing} is missing; send it together with ${first}.`)
  }
  const [method = "", target = ""] = pair.map((name) => headerOf(headers, name))
  if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(method)) throw wrong(`${pair[0]} is not a method; send the client's.`)
  if (/^(?:[/*]|https?:\/\/)/i.test(target)) return { method, target }
  throw wrong(`${pair[1]} is not a path or a URL; send the client's.`)
}

function headerOf(distinct: IncomingMessage["headersDistinct"], name: string): string | undefined {
  const values = distinct[name.toLowerCase()]
  if (values === undefined) return undefined
  if (values.length > 1) throw wrong(`${name} is repeated; let the gateway replace what the client sends.`)
  return values[0] === "" ? undefined : values[0]
}

/** Returns the parameters of a target's query. A repeated parameter is an array, which counts as missing. */
function queryOf(target: string): KnownFacts | undefined {
  const start = target.indexOf("?")
  if (start === -1) return undefined
  const query: Record<string, string | readonly string[]> = Object.create(null)
  for (const [name, value] of new URLSearchParams(target.slice(start))) {
    const known = query[name]
    query[name] = known === undefined ? value : [known, value].flat()
  }
  return query
}

function wrong(message: string): StatusError {
  return new StatusError(Code.INVALID_ARGUMENT, message)
}
