import { createLog } from "../../packages/service/src/program/log.ts"
import type { Metrics } from "../../packages/service/src/program/metrics.ts"
import { start } from "../../packages/service/src/program/running.ts"
import { createCommand } from "../../packages/service/src/program/settings/command.ts"
import { readSettings } from "../../packages/service/src/program/settings/read-settings.ts"
import { until } from "../servers/until.ts"
import type { LogLine, Program } from "./program.ts"

// Runs the program in this process. A separate process would take one or two seconds of CPU time to start.

/** Metrics that record nothing. */
export const NO_METRICS: Metrics = {
  onPhase() {},
  onLimiter() {},
  onUnknownService() {},
  onAnswered() {},
  onRefusedConnection() {},
  onLateConnection() {},
  onOverload() {},
  onWrongToken() {},
  onFailedHandshake() {},
  onSettlement() {},
  read: async () => ({ contentType: "text/plain", text: "" }),
  close: async () => undefined,
}

/** The program running in this process. Tests cannot send signals to it. */
export interface RunningHere extends Omit<Program, "ended" | "signal" | "stop"> {
  /** Drains and stops the program. Resolves with true if all calls in flight were answered in time. */
  stop(): Promise<boolean>
}

/** Starts the service with the arguments of its command line, on free ports unless `args` contains other ports. */
export async function startHere(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  metrics: Metrics = NO_METRICS,
): Promise<RunningHere> {
  const free = "127.0.0.1:0"
  const noop = (): void => undefined
  const ports = ["--grpc", free, "--http", free, "--operations", free]
  const command = createCommand("0", noop, noop).parse([...ports, ...args], { from: "user" })
  const settings = readSettings(command, env)
  let output = ""
  const log = createLog(settings.logLevel, {
    write: (line) => {
      output += line
    },
  })
  const running = await start(settings, env, log, metrics)
  const lines = () =>
    output
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as LogLine)
  const find = (msg: string | RegExp): LogLine | undefined =>
    lines().find((line) => (typeof msg === "string" ? line.msg === msg : msg.test(line.msg)))
  const listens = find("sluice-service is listening.")?.ports as Readonly<Record<string, number>>
  const operations = `http://127.0.0.1:${listens.operations}`
  return {
    grpc: `127.0.0.1:${listens.grpc}`,
    http: `${settings.tlsCert === undefined ? "http" : "https"}://127.0.0.1:${listens.http}`,
    operations,
    output: () => output,
    lines,
    async said(msg) {
      await until(`the log says ${msg}`, () => find(msg) !== undefined)
      return find(msg) as LogLine
    },
    async readyz() {
      const response = await fetch(`${operations}/readyz`)
      return { status: response.status, body: await response.json() }
    },
    stop: () => running.drain(),
  }
}
