import type { IncomingMessage } from "node:http"
import { clientAddressReader } from "@sluice/core/adapters"
import { peerAddress } from "../bounds/peers.ts"
import type { CallContext } from "../calls.ts"
import type { ForwardAnswer, Forwarding } from "../contract/forward.ts"
import { Code, StatusError } from "../status-error.ts"
import { type CheckPath, readCheckPath, readGatewayQuestion } from "./gateway-question.ts"
import { httpError, retryHeaders } from "./http-errors.ts"

/** The path of checks in metrics and in the log. */
export const CHECK_PATH = "/check"

/** The proxies that are trusted by default, which are the proxies on this machine. */
const DEFAULT_TRUSTED_PROXIES: readonly string[] = ["loopback"]

/** The response to a check. */
export interface CheckAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * An address that no client uses. If the client address reader returns this address, the peer that reported it is
 * trusted.
 */
const NOBODY = "0.0.0.0"

/**
 * Decides the requests that gateways describe with HTTP headers. Such gateways read only the status and the headers of
 * a response: nginx's auth_request, the forwardAuth of Traefik and Caddy, and Envoy's ext_authz.
 */
export class GatewayChecks {
  readonly #forwarding: Forwarding
  readonly #addressOf: ReturnType<typeof clientAddressReader>

  /** Only `trustedProxies` may describe requests. Throws InvalidOptionError if an address is invalid. */
  constructor(forwarding: Forwarding, trustedProxies: readonly string[] = DEFAULT_TRUSTED_PROXIES) {
    this.#forwarding = forwarding
    this.#addressOf = clientAddressReader({ trustedProxies })
  }

  /** Decides a check. Throws or rejects with StatusError. */
  decide(request: IncomingMessage, context: CallContext): CheckAnswer | Promise<CheckAnswer> {
    const peer = peerAddress(request.socket)
    const reported = (forwardedFor: string): string | undefined =>
      this.#addressOf({ remoteAddress: peer, headers: { "x-forwarded-for": forwardedFor } })
    if (reported(NOBODY) !== NOBODY) {
      throw new StatusError(
        Code.PERMISSION_DENIED,
        `${peer} is not a trusted proxy; add it to --trusted-proxies of the decision service.`,
      )
    }
    const path = readCheckPath(request.url as string)
    const { service, known } = readGatewayQuestion(path, request, reported)
    const answer = this.#forwarding.decideKnown(service, known, context)
    return answer instanceof Promise
      ? answer.then((made) => checkAnswer(made, path))
      : checkAnswer(answer, path)
  }
}

function checkAnswer(
  { shouldForward, statusCode, headers, body }: ForwardAnswer,
  { refused }: CheckPath,
): CheckAnswer {
  // Forbid caching, because 204 may be cached (RFC 9110 section 15.3.5), but every request needs a new decision.
  if (shouldForward) return { status: 204, headers: { ...headers, "Cache-Control": "no-store" }, body: "" }
  if (refused === undefined) return { status: statusCode, headers, body }
  return { status: refused, headers: { ...headers, "Sluice-Status": String(statusCode) }, body }
}

/**
 * Returns the response to a check that failed. With `refused`, a gateway recognizes a refusal by its status.
 * Therefore, an error has neither that status nor 401 or 403, which nginx passes on.
 */
export function failedCheck(error: StatusError, url: string): CheckAnswer {
  const { status, body } = httpError(error, undefined)
  const refused = /[?&]refused=(\d*)/.exec(url)?.[1]
  const isRefusal = refused !== undefined && [401, 403, Number(refused)].includes(status)
  return {
    status: isRefusal ? 500 : status,
    headers: { ...retryHeaders(error), "Content-Type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  }
}

/** Whether the headers of a request announce a body. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length = "0", "transfer-encoding": coding } = headers
  return coding !== undefined || Number(length) !== 0
}
