import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type ContenderProcess, startContender } from "../contender-process.ts"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const HOST = "127.0.0.1"
const START_MS = 20_000
const USAGE = new URL("./usage.ts", import.meta.url).href

/** What a process has used. */
export interface Usage {
  /** CPU time in microseconds. */
  readonly cpuUs: number
  readonly rssBytes: number
}

/** The decision service of a tree, as its operator runs it. */
export interface ServiceProgram {
  readonly grpcPort: number
  readonly httpPort: number
  usage(): Promise<Usage>
  stop(): Promise<void>
}

/** How to start it. */
export interface ProgramOptions {
  /** Folder of the repository whose build is started. Default: this one. */
  readonly root?: string
  /** Text of the rules file, or the arguments that say where else the rules are. */
  readonly rules: string | readonly string[]
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Flags of V8. */
  readonly flags?: readonly string[]
}

/** Starts it on free ports, with counters in its memory, and resolves when it listens. */
export async function startServiceProgram({
  root = ROOT,
  rules,
  args = [],
  env = {},
  flags = [],
}: ProgramOptions): Promise<ServiceProgram> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"))
  const file = join(folder, "rules.yaml")
  if (typeof rules === "string") writeFileSync(file, rules)
  const [grpcPort, httpPort, operationsPort] = await freePorts(3)
  const program = pathToFileURL(join(root, "packages/service/bin/sluice-service.js"))
  const contender = startContender(program, "sluice-service", {
    args: [
      ...["--grpc", `${HOST}:${grpcPort}`, "--http", `${HOST}:${httpPort}`],
      ...["--operations", `${HOST}:${operationsPort}`, "--log-level", "warn"],
      ...(typeof rules === "string" ? ["--rules", file] : rules),
      ...args,
    ],
    env,
    imports: [USAGE],
    flags,
  })
  const stop = async (): Promise<void> => {
    await contender.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    for (const port of [grpcPort, httpPort]) await listens(port as number, contender)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    grpcPort: grpcPort as number,
    httpPort: httpPort as number,
    usage: () => contender.ask<Usage>({}),
    stop,
  }
}

/** Ports that are free now. Another process may take one before the program does; it ends then, and says so. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = servers.map(
    (server) =>
      new Promise<number>((resolve) => {
        server.listen(0, HOST, () => resolve((server.address() as { port: number }).port))
      }),
  )
  const all = await Promise.all(ports)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return all
}

async function listens(port: number, program: ContenderProcess): Promise<void> {
  const startedAt = performance.now()
  while (!(await answers(port))) {
    // Rejects when the program has ended.
    await program.ask<Usage>({})
    if (performance.now() - startedAt > START_MS) throw new Error(`sluice-service does not listen on ${port}`)
    await pause(50)
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })
}
