import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { freePort } from "../servers/free-port.ts"
import { until } from "../servers/until.ts"
import { ROOT } from "./documents.ts"

/** An app in its own process. */
export interface Program {
  /** "http://127.0.0.1:1234" */
  readonly url: string
  /** Returns all output so far. */
  output(): string
}

/**
 * A module that is loaded before an app. The module sets the clock so that a minute began ten seconds before the
 * process started. No minute therefore ends during a test that takes less than fifty seconds.
 */
const EARLY_IN_A_MINUTE = `
const sinceMinuteMs = (performance.timeOrigin + performance.now()) % 60_000
Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin - sinceMinuteMs + 10_000 })
`

/**
 * Creates a folder with these files and the packages of the workspace. The folder is removed when the current test
 * ends.
 */
export function makeFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-docs-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  symlinkSync(`${ROOT}test/node_modules`, join(folder, "node_modules"))
  const all = { ...files, "package.json": '{ "type": "module" }', "early.js": EARLY_IN_A_MINUTE }
  for (const [name, text] of Object.entries(all)) writeFileSync(join(folder, name), text)
  return folder
}

/**
 * Starts a folder's app.js on a free port. Resolves when the program listens. The program stops when the current test
 * ends.
 */
export async function startApp(folder: string, env: Readonly<Record<string, string>> = {}): Promise<Program> {
  const port = await freePort()
  const child = spawn(process.execPath, ["--import", "./early.js", "app.js"], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env, PORT: `${port}` },
    stdio: "pipe",
  })
  let output = ""
  const listen = (text: Buffer): void => {
    output += text
  }
  child.stdout.on("data", listen)
  child.stderr.on("data", listen)
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  onTestFinished(async () => {
    child.kill("SIGKILL")
    await ended
  })
  const url = `http://127.0.0.1:${port}`
  // Check the port without a request, because requests are counted.
  await until("app.js listens", () => accepts(port)).catch((error: Error) => {
    throw new Error(`${error.message}: ${output}`)
  })
  return { url, output: () => output }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    const end = (isOpen: boolean): void => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once("connect", () => end(true)).once("error", () => end(false))
  })
}
