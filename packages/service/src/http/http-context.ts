import { EventEmitter } from "node:events"
import type { IncomingMessage } from "node:http"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { CallPlaces } from "../bounds/in-flight.ts"
import { type Asking, bearerToken, type CallContext } from "../calls.ts"
import { Code, StatusError } from "../status-error.ts"

/** The context of a call over HTTP. Values are read when a handler needs them. */
export class HttpContext implements CallContext {
  readonly asking: Asking
  readonly places: CallPlaces
  protected readonly request: Pick<IncomingMessage, "headers" | "socket">

  constructor(request: Pick<IncomingMessage, "headers" | "socket">, asking: Asking, places: CallPlaces) {
    this.request = request
    this.asking = asking
    this.places = places
  }

  get token(): string | undefined {
    return bearerToken(this.request.headers.authorization)
  }

  get peer(): string {
    const { remoteAddress, remotePort } = this.request.socket
    return `${remoteAddress}:${remotePort}`
  }
}

/**
 * The context of a check. A gateway that forwards the client's `Authorization` header can send its own token in
 * `Sluice-Token`.
 */
export class CheckContext extends HttpContext {
  override get token(): string | undefined {
    const { "sluice-token": token } = this.request.headers
    return typeof token === "string" ? token : super.token
  }
}

/** Maximum timeout in milliseconds, which is the limit of a Node timer. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * Returns the caller's timeout in milliseconds (Connect-Timeout-Ms), or undefined if the header is absent. Throws
 * StatusError for an invalid value.
 */
export function timeoutOf({ headers }: FastifyRequest): number | undefined {
  const text = headers["connect-timeout-ms"]
  if (text === undefined) return undefined
  if (typeof text === "string" && /^\d{1,10}$/.test(text)) return Math.min(Number(text), LONGEST_MS)
  const message = `Connect-Timeout-Ms: ${JSON.stringify(text)} is not a whole number of milliseconds; send 1 to 10 digits.`
  throw new StatusError(Code.INVALID_ARGUMENT, message)
}

/** A caller over HTTP with a timeout. The caller counts as closed when the connection closes or the timeout expires. */
export class TimedAsking extends EventEmitter implements Asking {
  closed = false
  readonly #stop: () => void

  /** `onLate` is called when the timeout expires. */
  constructor(reply: FastifyReply, timeoutMs: number, onLate: (error: StatusError) => void) {
    super()
    this.setMaxListeners(0)
    const close = (): void => {
      this.closed = true
      this.emit("close")
    }
    const timer = setTimeout(() => {
      close()
      onLate(
        new StatusError(
          Code.DEADLINE_EXCEEDED,
          `The call was not answered within the ${timeoutMs} ms of Connect-Timeout-Ms.`,
        ),
      )
    }, timeoutMs)
    reply.raw.once("close", close)
    this.#stop = () => {
      clearTimeout(timer)
      reply.raw.off("close", close)
    }
  }

  /** Stops the timer when the call has been answered. */
  end(): void {
    this.#stop()
  }
}
