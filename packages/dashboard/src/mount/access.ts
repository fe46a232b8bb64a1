import type { Warner } from "@sluice/core/kit"
import type { Visit } from "./visit.ts"

/** Decides who may see the page. Returns false or rejects for everybody else. */
export type Authorize = (request: never) => boolean | Promise<boolean>

const CLOSED =
  "The dashboard refused a request, because it does not certainly come from this machine. To open the dashboard to others, " +
  "set its option authorize, for example: authorize: (req) => isAdmin(req)."

/**
 * Returns a function that decides whether a visit is allowed: by `authorize`, or without it only from this machine.
 * The function never rejects.
 */
export function accessBy(
  authorize: Authorize | undefined,
  warner: Warner,
): (visit: Visit, request: unknown) => Promise<boolean> {
  return async (visit, request) => {
    if (authorize === undefined) {
      const isAllowed = isLocal(visit)
      if (!isAllowed) warner.once("SLUICE_DASHBOARD_CLOSED", CLOSED)
      return isAllowed
    }
    try {
      const result: unknown = await authorize(request as never)
      if (typeof result === "boolean") return result
      throw new TypeError(`authorize returned ${typeof result} instead of true or false`)
    } catch (error) {
      const message = "The dashboard's option authorize failed, so the request was refused with 403."
      warner.once("SLUICE_CALLBACK_FAILED", message, "authorize", error)
      return false
    }
  }
}

const LOOPBACK_ADDRESS = /^(::1|(::ffff:)?127(\.\d{1,3}){3})$/i
const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i
const OF_PROXIES = /^(forwarded|x-forwarded-.*|x-real-ip|via)$/

/**
 * True if a browser on this machine has sent the request. The peer's address alone is not enough. A proxy on this
 * machine has a loopback address, too. It adds headers, or it does not forward the header Connection, which browsers
 * send: nginx by default uses HTTP/1.0 with "close", and since 1.29.7 HTTP/1.1 without this header. HTTP/2 has no such
 * header. A page of another origin may have let its own name point to the loopback address (DNS rebinding), but the Host
 * header contains that name.
 */
function isLocal({ address = "", headers, httpVersion }: Visit): boolean {
  const { host = headers[":authority"], connection = "" } = headers
  return (
    LOOPBACK_ADDRESS.test(address) &&
    typeof host === "string" &&
    LOOPBACK_HOST.test(host) &&
    (httpVersion === "2.0" || (httpVersion === "1.1" && /^keep-alive$/i.test(connection))) &&
    !Object.keys(headers).some((name) => OF_PROXIES.test(name))
  )
}
