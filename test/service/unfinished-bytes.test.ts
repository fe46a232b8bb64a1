import { type ChildProcess, spawn } from "node:child_process"
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { type LogLine, type Program, startProgram } from "./program.ts"
import { FORWARD, question } from "./questions.ts"
import { callOnce } from "./raw-call.ts"
import { rulesFile } from "./rules-file.ts"
import { TWO_SERVICES } from "./started.ts"

// Attacks the program's memory with requests that never end or are held, and with unread responses. The attackers
// need no token.

const MIB = 2 ** 20
/** The bounds of the program and the attacks are divided by this number. */
const SCALE = examples(4, 1)
/** Maximum bytes of unfinished requests. The same maximum applies to unanswered requests. */
const MOST_BYTES = (64 * MIB) / SCALE
const PROBE = fileURLToPath(new URL("memory-probe.mjs", import.meta.url))
const ATTACK = fileURLToPath(new URL("unfinished-attack.mjs", import.meta.url))
const KINDS = ["heapUsed", "external", "arrayBuffers"] as const
const MANY = `${FORWARD}s`

/** A service whose rule admits one request and holds all others. */
const HOLDING = `---
service_id: 3
rules:
  name: held
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_waiting: 100000, max_wait_ms: 2147483647 }
`

const ends: (() => void)[] = []
const rules = rulesFile(TWO_SERVICES + HOLDING)
let program: Program
beforeAll(async () => {
  const bounds = {
    "--arrival-time": `${examples(1_000, 3_000)}ms`,
    "--max-message-bytes": 131_072 / SCALE,
    "--max-batch-bytes": (4 * MIB) / SCALE,
    "--max-unfinished-bytes": MOST_BYTES,
  }
  const args = ["--rules", rules, ...Object.entries(bounds).flat().map(String)]
  program = await startProgram(args, {}, ["--expose-gc", "--import", PROBE])
  await program.said("The service is ready.")
  expect(await innocent(program)).toBe("0 200")
})
afterEach(() => {
  for (const end of ends.splice(0)) end()
})
afterAll(() => program?.stop())

interface Memory {
  readonly heapUsed: number
  readonly external: number
  readonly arrayBuffers: number
  readonly rss: number
  /** The peak since the memory was last printed. On systems other than Linux, the peak since the program started. */
  readonly peakRss: number
}

async function memoryOf(of: Program): Promise<Memory> {
  const said = (): LogLine[] => of.lines().filter(({ msg }) => msg === "memory")
  const before = said().length
  of.signal("SIGUSR2")
  await until("the memory is printed", () => said().length > before)
  return said().at(-1) as unknown as Memory
}

/** Sends an innocent call on its own connection. Resolves with its response. */
async function innocent(of: Program): Promise<string> {
  const { status } = await callOnce(of.grpc, FORWARD, question("innocent", 9))
  const body = '{"serviceId":1,"request":"{\\"user_id\\":\\"innocent\\"}","peek":true}'
  const headers = { "content-type": "application/json", connection: "close" }
  const response = await fetch(of.http + FORWARD, { method: "POST", headers, body })
  await response.text()
  return `${status} ${response.status}`
}

interface Attack {
  readonly door: "grpc" | "http"
  readonly path: string
  readonly bytes: number
  readonly connections: number
  readonly streams?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly bomb?: boolean
  /** True if each request is complete and is sent to the service that holds requests. */
  readonly held?: boolean
  /** True if each request is complete and its response is not read. */
  readonly unread?: boolean
}

/** Starts an attack. Resolves when the attack has sent all that it can. The attack keeps its connections open. */
async function attack(of: Program, what: Attack): Promise<ChildProcess> {
  const port = Number(new URL(what.door === "grpc" ? `http://${of.grpc}` : of.http).port)
  const child = spawn(process.execPath, [
    ATTACK,
    JSON.stringify({ ...what, port, ms: examples(600, 5_000) * (what.unread ? 2 : 1) }),
  ])
  ends.push(() => void child.kill("SIGKILL"))
  let said = ""
  child.stdout.on("data", (text: Buffer) => {
    said += text
  })
  child.stderr.pipe(process.stderr)
  await until("the attack is over", () => said.includes("over"))
  return child
}

const GRPC = { door: "grpc", connections: 4, streams: 250 } as const
const HTTP = { door: "http", connections: 600 } as const
/**
 * Fewer senders, each with batches of 4 MB. Together, these senders send 256 MB, which is more than the program may
 * use.
 */
const GRPC_BATCHES = { ...GRPC, streams: 16, path: MANY, bytes: 4_000_000 / SCALE } as const
const HTTP_BATCHES = { ...HTTP, connections: 64, path: MANY, bytes: 4_000_000 / SCALE } as const
/** Held calls of 64 kB, which become objects of more than a megabyte each. */
const GRPC_HELD = { ...GRPC, streams: 75, path: FORWARD, bytes: 64_000 / SCALE, held: true } as const
const HTTP_HELD = { ...HTTP, connections: 300, path: FORWARD, bytes: 64_000 / SCALE, held: true } as const
/** Batches whose responses contain about 300 kB each. */
const GRPC_UNREAD = {
  ...GRPC,
  streams: 250 / SCALE,
  path: MANY,
  bytes: 200_000 / SCALE,
  unread: true,
} as const
const HTTP_UNREAD = { ...HTTP, connections: 100 / SCALE, path: MANY, bytes: 200_000, unread: true } as const
/** @grpc/grpc-js reads calls with this header. */
const GZIP = { "grpc-encoding": "gzip" }

describe("the memory of the program", () => {
  it.each<[string, Attack]>([
    ["single calls over gRPC", { ...GRPC, path: FORWARD, bytes: 120_000 / SCALE }],
    ["batches over gRPC", GRPC_BATCHES],
    [
      "single calls that @grpc/grpc-js reads",
      { ...GRPC, path: FORWARD, bytes: 120_000 / SCALE, headers: GZIP },
    ],
    ["batches that @grpc/grpc-js reads", { ...GRPC_BATCHES, headers: GZIP }],
    [
      "compressed calls over gRPC",
      { ...GRPC, path: FORWARD, bytes: 4_000_000 / SCALE, headers: GZIP, bomb: true },
    ],
    ["single calls over HTTP", { ...HTTP, path: FORWARD, bytes: 120_000 / SCALE }],
    ["batches over HTTP", HTTP_BATCHES],
    ["held single calls over gRPC", GRPC_HELD],
    ["held batches over gRPC", { ...GRPC_BATCHES, held: true }],
    ["held single calls over HTTP", HTTP_HELD],
    ["held batches over HTTP", { ...HTTP_BATCHES, held: true }],
    ["unread responses over gRPC", { ...GRPC_UNREAD, path: FORWARD, bytes: 50 }],
    ["unread responses to batches over gRPC", GRPC_UNREAD],
    ["unread responses that @grpc/grpc-js sends", { ...GRPC_UNREAD, headers: GZIP }],
    [
      "unread responses over HTTP",
      { ...HTTP_UNREAD, connections: examples(8, 100), path: FORWARD, bytes: 50 },
    ],
    ["unread responses to batches over HTTP", HTTP_UNREAD],
  ])("is bounded during %s that never end, and freed afterwards", async (_what, attacking) => {
    const before = await memoryOf(program)
    const asked: string[] = []
    let isOver = false
    const asking = (async () => {
      while (!isOver || asked.length < 10) {
        asked.push(await innocent(program))
        await sleep(50)
      }
    })()
    const attacker = await attack(program, attacking)
    isOver = true
    await asking
    expect(new Set(asked)).toEqual(new Set(["0 200"]))
    const { peakRss, arrayBuffers } = await memoryOf(program)
    expect((peakRss - before.rss) / MIB).toBeLessThan(examples(100, 200))
    // A refused call must not keep its body until its response is read, and a held call must not keep its body at
    // all.
    expect(arrayBuffers - before.arrayBuffers).toBeLessThan(1.5 * MOST_BYTES)
    attacker.kill("SIGKILL")
    // Wait, because the program still reads hundreds of megabytes that the attacker has sent.
    await until("it is given back", async () => {
      await sleep(100)
      const after = await memoryOf(program)
      return KINDS.every((kind) => (after[kind] - before[kind]) / MIB < 20 / SCALE)
    })
    expect(await innocent(program)).toBe("0 200")
  })

  it("contains no body of a refused call whose response waits for an earlier response", async () => {
    const before = await memoryOf(program)
    const refusals = async () => {
      const text = await (await fetch(`${program.operations}/metrics`)).text()
      const counts = text.matchAll(/^rpc_server_call_duration_count\{.*invalid_argument.*\} (\d+)/gm)
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
    }
    const refusedBefore = await refusals()
    const { hostname, port } = new URL(program.http)
    const socket = connect(Number(port), hostname).on("error", () => undefined)
    ends.push(() => socket.destroy())
    const head = (path: string, type: string, length: number, more = "") =>
      `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n${more}\r\n`
    // The rule may admit the first call. The rule holds the second call, and all later responses wait for the second
    // response.
    const held = '{"serviceId":3}'
    socket.write(`${head(FORWARD, "application/json", held.length)}${held}`.repeat(2))
    const body = Buffer.alloc(500_000)
    // Node stops reading a connection when 16 KiB of its responses are waiting.
    for (let calls = 0; calls < 10; calls++) {
      socket.write(head(MANY, "application/proto", body.length, "connect-timeout-ms: soon\r\n"))
      socket.write(body)
    }
    await until("all are refused", async () => (await refusals()) === refusedBefore + 10)
    // Wait, because the program may still be reading data of the previous test. The second call stays held for much
    // longer.
    await until("the bodies of the refused calls are free", async () => {
      const { arrayBuffers } = await memoryOf(program)
      return arrayBuffers - before.arrayBuffers < 2 * body.length
    })
  })
})
