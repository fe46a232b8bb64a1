import { type ChildProcess, spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { until } from "../servers/until.ts"

// Runs the built program, as an operator does. `pnpm test` builds the program first.

const BIN = fileURLToPath(new URL("../../packages/service/bin/sluice-service.js", import.meta.url))
/** The only environment variables of the machine that Node needs. */
const ENV = { PATH: process.env.PATH ?? "", HOME: tmpdir() }
const START_MS = 60_000

/** One line of the program's log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string; readonly level: string }

/** The exit code or the signal with which the program ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The program in a separate process, on free ports unless `args` sets other ports. */
export interface Program {
  readonly grpc: string
  /** A URL: "http://127.0.0.1:1234". */
  readonly http: string
  readonly operations: string
  readonly ended: Promise<Ended>
  /** Returns all output that the program has written so far. */
  output(): string
  /** Returns the log lines that the program has written so far. */
  lines(): LogLine[]
  /** Waits until the program logs a line with this message. */
  said(msg: string | RegExp): Promise<LogLine>
  signal(signal: NodeJS.Signals): void
  /** Resolves with the status and body of /readyz. */
  readyz(): Promise<{ readonly status: number; readonly body: unknown }>
  /** Kills the program if it is running. */
  stop(): Promise<void>
}

type Env = Readonly<Record<string, string>>

const children = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL")
})

/** Starts the program. Resolves when the program listens. Rejects with its output if the program ends before that. */
export async function startProgram(
  args: readonly string[],
  env: Env = {},
  nodeFlags: readonly string[] = [],
): Promise<Program> {
  const free = "127.0.0.1:0"
  const started = launch(["--grpc", free, "--http", free, "--operations", free, ...args], env, nodeFlags)
  const { output, ended } = started
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  const lines = (): LogLine[] =>
    output()
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as LogLine)
  const said = async (msg: string | RegExp): Promise<LogLine> => {
    let found: LogLine | undefined
    await until(
      `the program says ${msg}: ${output()}`,
      () => {
        found = lines().find((line) => (typeof msg === "string" ? line.msg === msg : msg.test(line.msg)))
        return found !== undefined || hasEnded
      },
      START_MS,
    )
    if (found === undefined) throw new Error(`it has ended without saying ${msg}: ${output()}`)
    return found
  }
  const { ports, settings } = await said("sluice-service is listening.")
  const { grpc, http, operations } = ports as Readonly<Record<string, number>>
  const scheme = (settings as { readonly tls: unknown }).tls === "none" ? "http" : "https"
  return {
    grpc: `127.0.0.1:${grpc}`,
    http: `${scheme}://127.0.0.1:${http}`,
    operations: `http://127.0.0.1:${operations}`,
    ...{ ended, output, lines, said },
    signal: (signal) => void started.child.kill(signal),
    async readyz() {
      const response = await fetch(`http://127.0.0.1:${operations}/readyz`)
      return { status: response.status, body: await response.json() }
    },
    async stop() {
      started.child.kill("SIGKILL")
      await ended
    },
  }
}

/** Runs the program until it exits. */
export async function runProgram(
  args: readonly string[],
  env: Env = {},
): Promise<Ended & { readonly out: string; readonly err: string }> {
  const { ended, out, err } = launch(args, env)
  return { ...(await ended), out: out(), err: err() }
}

/** Runs the program with closed standard output until it exits. */
export async function runUnread(args: readonly string[]): Promise<Ended & { readonly err: string }> {
  const { child, ended, err } = launch(args, {})
  child.stdout.destroy()
  return { ...(await ended), err: err() }
}

function launch(args: readonly string[], env: Env, nodeFlags: readonly string[] = []) {
  const child = spawn(process.execPath, [...nodeFlags, BIN, ...args], {
    env: { ...ENV, ...env },
    stdio: "pipe",
  })
  children.add(child)
  let out = ""
  let err = ""
  child.stdout.on("data", (text: Buffer) => {
    out += text
  })
  child.stderr.on("data", (text: Buffer) => {
    err += text
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject).once("close", (code, signal) => {
      children.delete(child)
      resolve({ code, signal })
    })
  })
  return { child, ended, out: () => out, err: () => err, output: () => out + err }
}
