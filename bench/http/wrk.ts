import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const SCRIPT = fileURLToPath(new URL("./report.lua", import.meta.url))
const run = promisify(execFile)

/** The results of wrk in one round. */
export interface Load {
  readonly requests: number
  readonly durationUs: number
  readonly p99Us: number
  /** Responses with a status of 400 or above. */
  readonly status: number
  /** Requests without a response. */
  readonly failed: number
}

/** Extra seconds for a load that a signal ends, so that the load does not end by itself before the signal. */
const LONG_ENOUGH_S = 10

/** The error message if wrk is missing. */
export const NO_WRK = "wrk is not on PATH. Debian and Ubuntu: apt-get install wrk. macOS: brew install wrk."

/** Whether wrk is in the PATH. */
export async function hasWrk(): Promise<boolean> {
  // wrk exits with 1 after it has printed its version.
  return run("wrk", ["-v"]).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  )
}

/**
 * Loads the server over `connections` connections from one thread, so that the server can use the other core.
 * `script` must print the result of report.lua. wrk accepts only whole seconds. For any other duration, a signal ends
 * wrk, which checks for signals every 100 ms.
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
  if (line === undefined) throw new Error(`wrk printed no result: ${stdout}`)
  return JSON.parse(line)
}
