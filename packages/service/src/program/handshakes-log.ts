import type { Log } from "./log.ts"

const QUIET_MS = 60_000

/** Yields what is told of each caller that no TLS could be spoken with, and writes a line for the first of each reason in a minute. */
export function logFailedHandshakes(
  log: Pick<Log, "warn">,
  now: () => number = () => performance.now(),
): (reason: string, peer: string | undefined) => void {
  // Reasons are codes of OpenSSL and Node, of which there are some hundred.
  const quietUntilMs = new Map<string, number>()
  return (reason, peer) => {
    if (now() < (quietUntilMs.get(reason) ?? Number.NEGATIVE_INFINITY)) return
    quietUntilMs.set(reason, now() + QUIET_MS)
    log.warn({ reason, peer }, "a caller has not come to speak TLS")
  }
}
