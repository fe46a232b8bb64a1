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

/** The resources that a process has used. */
export interface Usage {
  /** CPU time in microseconds. */
  readonly cpuUs: number
  readonly rssBytes: number
}

/** The decision service of a tree, started from the command line. */
export interface ServiceProgram {
  readonly grpcPort: number
  readonly httpPort: number
  usage(): Promise<Usage>
  stop(): Promise<void>
}

/** The options of {@link startServiceProgram}. */
export interface ProgramOptions {
  /** The repository folder whose build is started. Default: this repository. */
  readonly root?: string
  /** Text of the rules file, or command-line arguments that select another rule source. */
  readonly rules: string | readonly string[]
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** V8 flags. */
  readonly flags?: readonly string[]
}

/** Starts the service on free ports, with counters in memory. Resolves when the service listens. */
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

/** Returns free ports. If another process binds one of the ports first, the program ends with an error. */
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
    // Then rejects, because the program has ended.
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
