import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { Server, ServerCredentials } from "@grpc/grpc-js"
import { memoryStore, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { createRuleBook, fileRules } from "@sluice/rules"
import { auditTo, createDecisionService, tokens } from "@sluice/service"
import { Redis } from "ioredis"
import { answerTasks } from "../contender-process.ts"

/** A task that starts a server on a free port, or returns the CPU time of the process. */
export type Task = { readonly start: Kind; readonly redisPort: number } | { readonly usage: true }
/** The kind of server. "grpc-js" is @grpc/grpc-js alone, with a handler that returns constant bytes. */
export type Kind = "memory" | "redis" | "grpc-js"

const RULES = `
service_id: 1
rules: { name: user, field: user_id, rate: { requests_per_unit: 1000000, unit: day } }
---
service_id: 2
rules: { name: user, field: user_id, rate: { requests_per_unit: 1, unit: week } }
`
/** A response that is as long as the service's response. */
const ANSWER = Buffer.concat([Buffer.from([0x08, 1, 0x12, 118]), Buffer.alloc(118, 0x61)])
const HOST = "127.0.0.1"

// The service program sets this flag too. Set it here for each kind of server, so that the comparison is fair.
setFlagsFromString("--no-allocation-site-pretenuring")

answerTasks(async (task: Task) => {
  if ("usage" in task) {
    const { user, system } = process.cpuUsage()
    return user + system
  }
  if (task.start === "grpc-js") return startLibrary()
  return startService(
    task.start === "memory" ? memoryStore() : redisStore({ client: new Redis(task.redisPort, HOST) }),
  )
})

async function startService(store: Store): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"))
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, "rules.yaml")
  writeFileSync(file, RULES)
  const book = createRuleBook({ source: fileRules(file), services: "all" })
  await book.ready()
  const service = createDecisionService({
    book,
    registry: undefined,
    // The timeout is long, because a machine under benchmark load may be slow.
    shared: { store, storeTimeoutMs: 5_000 },
    unknownServices: "forward",
    tokens: tokens({}),
    isRegistrationOpen: false,
    audit: auditTo({ info() {}, warn() {} }),
    bounds: { maxMessageBytes: 4 * 2 ** 20, maxInFlight: 1_000, arrivalMs: 10_000, maxRequests: 1_000 },
    onLimiter() {},
    onUnknownService() {},
    onFault(error) {
      console.error(error)
    },
  })
  const { grpc } = await service.listen({ host: HOST, port: 0 }, { host: HOST, port: 0 })
  return grpc
}

function startLibrary(): Promise<number> {
  const server = new Server({ "grpc.enable_channelz": 0 })
  const same = (bytes: Buffer): Buffer => bytes
  const path = "/sluice.v1.RateLimiter/ShouldForwardRequest"
  const definition = {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  }
  server.addService(
    { call: definition },
    { call: (_call: unknown, done: (error: null, bytes: Buffer) => void) => done(null, ANSWER) },
  )
  return new Promise((resolve, reject) => {
    server.bindAsync(`${HOST}:0`, ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    )
  })
}
