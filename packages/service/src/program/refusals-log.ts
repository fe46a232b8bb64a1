import type { Log } from "./log.ts"

const QUIET_MS = 60_000

/** Yields what is called for each connection that is refused, and writes a line for the first of them in a minute. */
export function logRefusedConnections(
  log: Pick<Log, "warn">,
  now: () => number = () => performance.now(),
): () => void {
  let quietUntilMs = Number.NEGATIVE_INFINITY
  return () => {
    if (now() < quietUntilMs) return
    quietUntilMs = now() + QUIET_MS
    log.warn("connections are refused: --max-connections are open")
  }
}
