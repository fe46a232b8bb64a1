import { sendRequests } from "../http/requests.ts"
import { openGrpcLoad } from "../service/grpc-load.ts"
import { inBatches, singly } from "../service/messages.ts"
import { type ServiceProgram, startServiceProgram } from "../service/program.ts"
import { FLAGS } from "./build.ts"
import type { Calling } from "./measurements.ts"

const SERVICE = 1
const RULES = `
service_id: ${SERVICE}
rules: { name: user, field: user_id, rate: { requests_per_unit: 1000000, unit: day } }
`
const SINGLE_IN_FLIGHT = 32
const BATCHES_IN_FLIGHT = 4
const CONNECTIONS = 16
const BODY = JSON.stringify({ serviceId: SERVICE, request: JSON.stringify({ user_id: "client-00001" }) })
const POST = [
  "POST /sluice.v1.RateLimiter/ShouldForwardRequest HTTP/1.1",
  "host: localhost",
  "content-type: application/json",
  `content-length: ${BODY.length}`,
  "",
  BODY,
].join("\r\n")

/** The decision service of one source tree, and clients that call it over gRPC and HTTP. */
export interface CalledService extends Pick<ServiceProgram, "usage" | "stop"> {
  /** Requests this number of decisions from the service. Rejects if a call fails or is refused. */
  call(how: Calling, decisions: number): Promise<void>
}

export async function startCalledService(root: string): Promise<CalledService> {
  const program = await startServiceProgram({ root, rules: RULES, flags: FLAGS })
  const load = await openGrpcLoad(program.grpcPort)
  return {
    usage: program.usage,
    async call({ over, each }, decisions) {
      if (over === "http") return sendRequests(program.httpPort, CONNECTIONS, decisions, POST)
      const { path, messages } = each === 1 ? singly(SERVICE) : inBatches(SERVICE, each)
      const calls = decisions / each
      const inFlight = each === 1 ? SINGLE_IN_FLIGHT : BATCHES_IN_FLIGHT
      const { answers } = await load.ask({ path, messages, inFlight, until: { calls } })
      if (answers !== calls) throw new Error(`${answers} of ${calls} calls were answered`)
    },
    async stop() {
      load.close()
      await program.stop()
    },
  }
}
