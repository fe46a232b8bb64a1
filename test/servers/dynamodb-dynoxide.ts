import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import type { RunningEngine } from "./dynamodb-engine.ts"
import { freePort } from "./free-port.ts"
import { until } from "./until.ts"

/** Path of the binary, or undefined if there is no binary for this platform. */
export const dynoxideBinary: string | undefined = (() => {
  try {
    const manifest = createRequire(import.meta.url).resolve("@dynoxide/linux-x64/package.json")
    const binary = manifest.replace(/package\.json$/, "dynoxide")
    return existsSync(binary) ? binary : undefined
  } catch {
    return undefined
  }
})()

/**
 * Starts the server, and kills it when the input ends. The input ends when this process stops the server or ends for
 * any reason.
 */
const SCRIPT = '"$1" serve --host "$2" --port "$3" & read line; kill -9 $!'

/**
 * Starts dynoxide in memory on a free port. Resolves once it responds. Rejects if there is no binary for this
 * platform.
 */
export async function startDynoxide(host: string): Promise<RunningEngine> {
  if (dynoxideBinary === undefined) throw new Error("there is no dynoxide for this platform")
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    const child = spawn("/bin/sh", ["-c", SCRIPT, "sh", dynoxideBinary, host, String(port)], {
      stdio: ["pipe", "ignore", "ignore"],
      // Ctrl-C in a terminal must only reach this process, which then ends the server.
      detached: true,
    })
    try {
      await until("dynoxide answers", () => answers(host, port))
      child.unref()
      // The pipe must not keep this process alive.
      if (child.stdin !== null && "unref" in child.stdin && typeof child.stdin.unref === "function") {
        child.stdin.unref()
      }
      return { port, stop: () => end(child) }
    } catch (error) {
      await end(child)
      if (attempt === 3) throw error
    }
  }
}

async function answers(host: string, port: number): Promise<boolean> {
  await (await fetch(`http://${host}:${port}/`)).arrayBuffer()
  return true
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once("exit", resolve))
  child.stdin?.end()
  await gone
}
