import { EventEmitter } from "node:events"
import type { FastifyReply, FastifyRequest } from "fastify"
import { type Asking, bearerToken, type CallContext } from "../calls.ts"
import type { CallPlaces } from "../in-flight.ts"
import { Code, StatusError } from "../status-error.ts"

/** What a handler may want to know of a call over HTTP; read when it does. */
export class HttpContext implements CallContext {
  readonly asking: Asking
  readonly places: CallPlaces
  readonly #request: FastifyRequest

  constructor(request: FastifyRequest, asking: Asking, places: CallPlaces) {
    this.#request = request
    this.asking = asking
    this.places = places
  }

  get token(): string | undefined {
    return bearerToken(this.#request.headers.authorization)
  }

  get peer(): string {
    const { remoteAddress, remotePort } = this.#request.socket
    return `${remoteAddress}:${remotePort}`
  }
}

/** As long as a caller may want to wait, in milliseconds: what Connect's header can say, and a timer can. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * The milliseconds after which a caller does not wait any more (Connect-Timeout-Ms); undefined where it does not say.
 * Throws StatusError for what is no such number.
 */
export function timeoutOf({ headers }: FastifyRequest): number | undefined {
  const text = headers["connect-timeout-ms"]
  if (text === undefined) return undefined
  if (typeof text === "string" && /^\d{1,10}$/.test(text)) return Math.min(Number(text), LONGEST_MS)
  throw new StatusError(Code.INVALID_ARGUMENT, "Connect-Timeout-Ms is not a whole number of milliseconds.")
}

/** A caller over HTTP that waits no longer than a time: it is closed when the connection is, or the time has passed. */
export class TimedAsking extends EventEmitter implements Asking {
  closed = false
  readonly #stop: () => void

  /** `onLate` is called when the time has passed. */
  constructor(reply: FastifyReply, timeoutMs: number, onLate: (error: StatusError) => void) {
    super()
    this.setMaxListeners(0)
    const close = (): void => {
      this.closed = true
      this.emit("close")
    }
    const timer = setTimeout(() => {
      close()
      onLate(new StatusError(Code.DEADLINE_EXCEEDED, `No answer within ${timeoutMs} ms.`))
    }, timeoutMs)
    reply.raw.once("close", close)
    this.#stop = () => {
      clearTimeout(timer)
      reply.raw.off("close", close)
    }
  }

  /** It has been answered. */
  end(): void {
    this.#stop()
  }
}
