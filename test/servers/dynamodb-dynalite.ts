import type { AddressInfo } from "node:net"
import dynalite from "dynalite"
import type { RunningEngine } from "./dynamodb-engine.ts"

/** Starts dynalite in this process, in memory, on a free port. */
export async function startDynalite(
  host: string,
  times: { readonly createTableMs: number; readonly deleteTableMs: number },
): Promise<RunningEngine> {
  const server = dynalite(times)
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, host, resolve)
  })
  let stopped: Promise<void> | undefined
  return {
    port: (server.address() as AddressInfo).port,
    stop() {
      stopped ??= new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
      return stopped
    },
  }
}
