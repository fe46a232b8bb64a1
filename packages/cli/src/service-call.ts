import { SluiceError, withoutCredentials } from "@sluice/core"
import type { Io } from "./io.ts"
import { UsageError } from "./usage-error.ts"

/** Where the decision service listens unless it is told otherwise. */
const DEFAULT_URL = "http://127.0.0.1:8080"
const TIMEOUT_MS = 10_000

/** The decision service refused a call, or gave no answer. The message says what to do. */
export class ServiceCallError extends SluiceError {
  readonly code = "SLUICE_SERVICE_CALL"
  /** Whether the service could not be asked, so that the call may be repeated. */
  readonly isUnreachable: boolean

  constructor(message: string, isUnreachable: boolean, options?: ErrorOptions) {
    super(message, options)
    this.isUnreachable = isUnreachable
  }
}

/** An answer over HTTP: the message, or the error in the shape of Connect. */
interface Answer extends Readonly<Record<string, unknown>> {
  readonly message?: string
  readonly details?: readonly { readonly debug?: { readonly fieldViolations?: readonly Violation[] } }[]
}

interface Violation {
  readonly field: string
  readonly description: string
}

/**
 * Calls the decision service over HTTP, with the token of `SLUICE_TOKEN`. Throws UsageError for a wrong URL, and rejects with
 * ServiceCallError.
 */
export async function callService(
  url: string | undefined,
  method: string,
  request: object,
  { env }: Io,
): Promise<Answer> {
  const base = (url ?? env.SLUICE_URL) || DEFAULT_URL
  const target = targetOf(base, method)
  const token = env.SLUICE_TOKEN ?? ""
  let response: Response
  let answer: Answer
  try {
    response = await fetch(target, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token !== "" && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    answer = (await response.json()) as Answer
  } catch (cause) {
    throw new ServiceCallError(
      `The decision service at ${shown(base)} gave no answer: ${reasonOf(cause)}. Give its HTTP address with --url or SLUICE_URL.`,
      true,
      { cause },
    )
  }
  if (response.ok) return answer
  throw refused(response.status, answer)
}

function targetOf(base: string, method: string): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--url ${shown(base)} is not a URL: give one such as ${DEFAULT_URL}`)
  }
  return new URL(`/sluice.v1.RateLimiter/${method}`, url)
}

function refused(status: number, { message = `status ${status}`, details = [] }: Answer): ServiceCallError {
  const violations = details.flatMap(({ debug }) => debug?.fieldViolations ?? [])
  const text = violations.map(({ field, description }) => `${field} ${description}`).join("; ")
  const advice = status === 401 || status === 403 ? " Set SLUICE_TOKEN to the token of this service." : ""
  return new ServiceCallError(`${text === "" ? message : text}${advice}`, status >= 500)
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error && cause.message !== "" ? cause.message : message
}

function shown(url: string): string {
  return JSON.stringify(withoutCredentials(url))
}
