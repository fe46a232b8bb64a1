import type { IncomingMessage } from "node:http"
import { isIP } from "node:net"
import { Code, StatusError } from "../status-error.ts"

/** Matches loopback addresses in the format of sockets. */
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

/**
 * Throws StatusError if a request to a loopback address names another host. A web page can let its own name resolve
 * to a loopback address (DNS rebinding). The browser then lets the page call a service on the user's machine. Such a
 * name contains a dot, is not an address, and does not end in "localhost".
 */
export function requireOwnName({ socket, headers: { host } }: IncomingMessage): void {
  if (host === undefined || !LOOPBACK.test(socket.localAddress ?? "")) return
  const name = host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1")
  if (!name.includes(".") || isIP(name) !== 0 || /(?:^|\.)localhost\.?$/i.test(name)) return
  throw new StatusError(
    Code.PERMISSION_DENIED,
    "The header Host names another machine, and calls need no token; call localhost or 127.0.0.1, or set SLUICE_TOKENS and SLUICE_DECIDE_TOKENS.",
  )
}
