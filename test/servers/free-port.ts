import { createServer } from "node:net"

// Use ports below 22768. A cluster node's bus port (10000 higher) is then below 32768, where the ports of outgoing
// connections begin. Therefore, only other servers of the tests can bind one of these ports meanwhile.
const LOWEST = 10_000
const HIGHEST = 22_767
/** Offset of a cluster node's bus port from its own port. */
const BUS_OFFSET = 10_000

/**
 * Returns a port of 127.0.0.1 that is free now, and whose bus port (10000 higher) is free too. Another process may
 * bind the port first, so the caller must retry if it cannot listen.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    // Choose at random, so that parallel test processes rarely try the same port.
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
