import type { Server, ServerWritableStream, UntypedServiceImplementation } from "@grpc/grpc-js"
import { HealthImplementation } from "grpc-health-check"

/** The gRPC health service: https://github.com/grpc/grpc/blob/master/doc/health-checking.md */
export interface Health {
  /** Adds the health service to a server. */
  addTo(server: Server): void
  /** Sets the status of the whole server and of each service in `names`. */
  say(isServing: boolean, services: readonly string[]): void
  /**
   * Ends all Watch calls. A server shuts down only after its calls have ended, and Watch calls never end by
   * themselves.
   */
  endWatches(): void
}

type Watch = ServerWritableStream<unknown, unknown>

/** Creates a health service. The status is NOT_SERVING until `say` changes the status. */
export function createHealth(): Health {
  const implementation = new HealthImplementation({ "": "NOT_SERVING" })
  const watches = new Set<Watch>()
  return {
    addTo(server) {
      implementation.addToServer({
        addService(service, handlers) {
          const { watch, ...others } = handlers as UntypedServiceImplementation
          const remembered = (call: Watch): void => {
            watches.add(call)
            call.once("close", () => watches.delete(call)).once("cancelled", () => watches.delete(call))
            ;(watch as (call: Watch) => void)(call)
          }
          server.addService(
            service as Parameters<Server["addService"]>[0],
            {
              ...others,
              watch: remembered,
            } as UntypedServiceImplementation,
          )
        },
      })
    },
    say(isServing, services) {
      for (const name of ["", ...services]) {
        implementation.setStatus(name, isServing ? "SERVING" : "NOT_SERVING")
      }
    },
    endWatches() {
      for (const watch of watches) watch.end()
      watches.clear()
    },
  }
}
