import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const SCRIPT = fileURLToPath(new URL("./report.lua", import.meta.url))
const run = promisify(execFile)

/** What wrk saw in one round. */
export interface Load {
  readonly requests: number
  readonly durationUs: number
  readonly p99Us: number
  /** Answers with a status of 400 or above. */
  readonly status: number
  /** Requests without an answer. */
  readonly failed: number
}

/** For which a load that ends with a signal would go on without it. */
const LONG_ENOUGH_S = 10

/** For whom it is not. */
export const NO_WRK = "wrk is not on PATH. Debian and Ubuntu: apt-get install wrk. macOS: brew install wrk."

/** Whether wrk is there. */
export async function hasWrk(): Promise<boolean> {
  // It ends with 1 when it prints its version.
  return run("wrk", ["-v"]).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  )
}

/**
 * Loads the server from so many connections, in one thread: the server has the other core. `script` ends as report.lua. wrk
 * counts whole seconds; less than that ends with a signal, which it looks for every tenth of a second.
 */
export async function load(
  port: number,
  connections: number,
  seconds: number,
  script: string = SCRIPT,
): Promise<Load> {
  const isWhole = Number.isInteger(seconds)
  const duration = isWhole ? seconds : Math.ceil(seconds) + LONG_ENOUGH_S
  const url = `http://127.0.0.1:${port}/`
  const running = run("wrk", [`-c${connections}`, "-t1", `-d${duration}s`, "-s", script, url])
  if (!isWhole) setTimeout(() => running.child.kill("SIGINT"), seconds * 1000)
  const { stdout } = await running
  const line = stdout.split("\n").find((one) => one.startsWith("{"))
  if (line === undefined) throw new Error(`wrk told nothing: ${stdout}`)
  return JSON.parse(line)
}
