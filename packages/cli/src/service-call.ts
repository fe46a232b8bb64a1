import { SluiceError, withoutCredentials } from "@sluice/core"
import type { Io } from "./io.ts"
import { UsageError } from "./usage-error.ts"

/** Default address of the decision service. */
const DEFAULT_URL = "http://127.0.0.1:8080"
const TIMEOUT_MS = 10_000

/** The decision service refused a call, or did not respond. The message explains what to do. */
export class ServiceCallError extends SluiceError {
  readonly code = "SLUICE_SERVICE_CALL"
  /** True if the service could not be reached, so that the call may be repeated. */
  readonly isUnreachable: boolean

  constructor(message: string, isUnreachable: boolean, options?: ErrorOptions) {
    super(message, options)
    this.isUnreachable = isUnreachable
  }
}

/** The body of an HTTP response: the message, or an error in Connect's format. */
interface ServiceAnswer extends Readonly<Record<string, unknown>> {
  readonly code?: string
  readonly message?: string
  readonly details?: readonly { readonly debug?: { readonly fieldViolations?: readonly Violation[] } }[]
}

interface Violation {
  readonly field: string
  readonly description: string
}

/** How long to wait for a call. */
interface CallWait {
  /** Aborts the call. */
  readonly signal?: AbortSignal
  /** Default: 10 seconds. */
  readonly timeoutMs?: number
}

/**
 * Calls the decision service over HTTP, with the token of `SLUICE_TOKEN`. Throws UsageError for an invalid URL or
 * token, and rejects with ServiceCallError.
 */
export async function callService(
  url: string | undefined,
  method: string,
  request: object,
  { env }: Io,
  { signal, timeoutMs = TIMEOUT_MS }: CallWait = {},
): Promise<ServiceAnswer> {
  const base = (url ?? env.SLUICE_URL) || DEFAULT_URL
  const target = targetOf(base, url === undefined ? "SLUICE_URL" : "--url", method)
  const headers = { "content-type": "application/json", ...authorizationOf(env.SLUICE_TOKEN ?? "") }
  let response: Response
  let body: string
  try {
    response = await fetch(target, {
      method: "POST",
      headers,
      body: JSON.stringify(request),
      // Do not follow redirects, because a redirected POST would become a GET.
      redirect: "manual",
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]),
    })
    body = await response.text()
  } catch (cause) {
    throw new ServiceCallError(
      `The decision service at ${shown(base)} did not respond: ${reasonOf(cause, timeoutMs)}. Check --url or SLUICE_URL, then run the command ` +
        "again. It is safe to run it twice.",
      true,
      { cause },
    )
  }
  const answer = parsed(body)
  // Every error of the decision service contains a code. A response without a code may come from the operations port.
  const isOther = [404, 405].includes(response.status) && answer?.code === undefined
  if (answer === undefined || isOther) {
    throw notTheService(base, response.status)
  }
  if (response.ok) return answer
  throw refused(response.status, answer)
}

/** Returns the URL of a method. `source` names the option or variable that contains the base URL. */
function targetOf(base: string, source: string, method: string): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${source} ${shown(base)} is not an HTTP URL: give one such as ${DEFAULT_URL}`)
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(`${source} contains a user name or password: remove it and set SLUICE_TOKEN`)
  }
  // A gateway may serve the decision service below a path.
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/sluice.v1.RateLimiter/${method}`
  url.search = ""
  url.hash = ""
  return url
}

/**
 * Returns the header for a token, or no header without a token. Throws UsageError for an invalid token. Unlike an
 * error of `fetch`, its message does not contain the token.
 */
function authorizationOf(token: string): { readonly authorization?: string } {
  const trimmed = token.trim()
  if (trimmed === "") return {}
  if (/^[\x21-\x7e]+$/.test(trimmed)) return { authorization: `Bearer ${trimmed}` }
  throw new UsageError(
    "SLUICE_TOKEN is not a valid token: it contains a space, a line break or a character outside ASCII",
  )
}

/** Returns the JSON object in the body of a response; undefined if there is none. */
function parsed(body: string): ServiceAnswer | undefined {
  try {
    const answer: unknown = JSON.parse(body)
    return typeof answer === "object" && answer !== null ? (answer as ServiceAnswer) : undefined
  } catch {
    return undefined
  }
}

function notTheService(base: string, status: number): ServiceCallError {
  return new ServiceCallError(
    `${shown(base)} responded with status ${status}, but its response is not from the decision service. Set --url or SLUICE_URL to the ` +
      "service's HTTP address, not its gRPC address or operations port.",
    true,
  )
}

function refused(
  status: number,
  { message = `status ${status}`, details = [] }: ServiceAnswer,
): ServiceCallError {
  const violations = details.flatMap(({ debug }) => debug?.fieldViolations ?? [])
  const text = violations.map(({ field, description }) => `${field} ${description}`).join("; ")
  const advice = status === 401 || status === 403 ? " Set SLUICE_TOKEN to the token of this service." : ""
  return new ServiceCallError(`${text === "" ? message : text}${advice}`, status >= 500)
}

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, message, cause } = error as Error
  if (name === "TimeoutError") return `it took longer than ${timeoutMs / 1_000} seconds`
  if (!(cause instanceof Error)) return message
  // An AggregateError contains one error for each address, and has an empty message.
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? message)
}

function shown(url: string): string {
  return JSON.stringify(withoutCredentials(url))
}
