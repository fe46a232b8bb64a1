import { createServer } from "node:net"

// Below 22768, so that a cluster node's bus port (10000 above) is below 32768, where the ports of outgoing connections
// begin: nobody but another server of the tests can take one of these in between.
const LOWEST = 10_000
const HIGHEST = 22_767
/** A cluster node's bus listens this far above its own port. */
const BUS_OFFSET = 10_000

/**
 * A port of 127.0.0.1 that is free now, as is the one 10000 above it. Another process may take it before the caller
 * does, so the caller tries again when it cannot listen.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    // At random, so that test processes running side by side seldom want the same one.
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1))
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(false))
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)))
  })
}
