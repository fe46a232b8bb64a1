import { type ChildProcess, spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { until } from "../servers/until.ts"

// What is built, as its operator runs it: `pnpm test` builds it first.

const BIN = fileURLToPath(new URL("../../packages/service/bin/sluice-service.js", import.meta.url))
/** Of the machine's own settings only what Node needs. */
const ENV = { PATH: process.env.PATH ?? "", HOME: tmpdir() }
const START_MS = 60_000

/** A line of its log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string; readonly level: string }

/** How it ended: an exit code or a signal. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The program as a process of its own, on free ports unless `args` say otherwise. */
export interface Program {
  readonly grpc: string
  /** As an URL: "http://127.0.0.1:1234". */
  readonly http: string
  readonly operations: string
  readonly ended: Promise<Ended>
  /** All that it has written. */
  output(): string
  /** Of its log. */
  lines(): LogLine[]
  /** Waits for a line of its log. */
  said(msg: string | RegExp): Promise<LogLine>
  signal(signal: NodeJS.Signals): void
  /** Status and body of /readyz. */
  readyz(): Promise<{ readonly status: number; readonly body: unknown }>
  /** Ends it at once, if it runs. */
  stop(): Promise<void>
}

type Env = Readonly<Record<string, string>>

const children = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL")
})

/** Starts it, and resolves when it listens. Rejects with what it wrote where it ends before. */
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
  const { ports, settings } = await said("sluice-service listens")
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

/** Runs it to its end. */
export async function runProgram(
  args: readonly string[],
  env: Env = {},
): Promise<Ended & { readonly out: string; readonly err: string }> {
  const { ended, out, err } = launch(args, env)
  return { ...(await ended), out: out(), err: err() }
}

/** The same, but nobody reads its standard output. */
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
