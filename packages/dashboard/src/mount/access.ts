import type { Warner } from "@sluice/core/kit"
import type { Visit } from "./visit.ts"

/** What a visitor may do: see the page, or also change clients. */
export type VisitorRole = "viewer" | "operator"

/** Decides who may see the page, and who may also change clients. Returns false or rejects for everybody else. */
export type Authorize = (
  request: never,
  isLocal: boolean,
) => boolean | "operator" | Promise<boolean | "operator">

const CLOSED =
  "The dashboard refused a request, because it does not certainly come from this machine. To open the dashboard to others, " +
  "set its option authorize, for example: authorize: (req) => isAdmin(req)."

/** The roles by the results of `authorize`. */
const ROLES: ReadonlyMap<unknown, VisitorRole> = new Map<unknown, VisitorRole>([
  [true, "viewer"],
  ["operator", "operator"],
])

/**
 * Returns a function that resolves with the role of a visitor: by `authorize`, or without it "viewer" on this machine.
 * Resolves with undefined for a visitor who may not see the page. The function never rejects.
 */
export function accessBy(
  authorize: Authorize | undefined,
  warner: Warner,
): (visit: Visit) => Promise<VisitorRole | undefined> {
  return async (visit) => {
    const isFromHere = isLocal(visit)
    if (authorize === undefined) {
      if (isFromHere) return "viewer"
      warner.once("SLUICE_DASHBOARD_CLOSED", CLOSED)
      return undefined
    }
    return ROLES.get(
      await resultOf(
        "authorize",
        () => authorize(visit.request as never, isFromHere),
        [...ROLES.keys()],
        warner,
      ),
    )
  }
}

/**
 * Resolves with the result of an option's function. If the function fails or its result is neither false nor one of
 * `accepted`, emits a warning and resolves with false.
 */
export async function resultOf(
  option: string,
  call: () => unknown,
  accepted: readonly unknown[],
  warner: Warner,
): Promise<unknown> {
  try {
    const result = await call()
    if (result === false || accepted.includes(result)) return result
    const values = [false, ...accepted].map((value) => JSON.stringify(value)).join(", ")
    throw new TypeError(`${option} returned ${typeof result} instead of one of ${values}`)
  } catch (error) {
    const message = `The dashboard's option ${option} failed, so the request was refused with 403.`
    warner.once("SLUICE_CALLBACK_FAILED", message, option, error)
    return false
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
