import { randomUUID } from "node:crypto"
import { runningWith } from "./processes.ts"
import { findRedis } from "./redis-binary.ts"
import { until } from "./until.ts"

/** The environment variable by which the processes of a test run are recognized. They inherit the variable. */
const RUN = "SLUICE_TEST_RUN"

/**
 * Finds Redis once before any test, so that it is unpacked only once. If Redis is missing, the run fails with a
 * one-line error. After all tests, the run fails if a test has left a process running.
 */
export default async function setup(): Promise<() => Promise<void>> {
  await findRedis()
  const run = randomUUID()
  process.env[RUN] = run
  // Vitest's workers are children of this process.
  const left = () => runningWith(`${RUN}=${run}`).filter(({ parent }) => parent !== process.pid)
  return async () => {
    await until("all processes of the tests have ended", async () => left().length === 0, 10_000).catch(
      () => {
        const lines = left().map(({ pid, command }) => `  ${pid} ${command}`)
        for (const { pid } of left()) process.kill(pid, "SIGKILL")
        console.error(`Tests have left these processes running:\n${lines.join("\n")}`)
        // An error here would not make the run fail.
        process.exitCode = 1
      },
    )
  }
}
