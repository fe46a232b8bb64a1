import { spawn } from "node:child_process"
import { open } from "node:fs/promises"
import { fileURLToPath } from "node:url"

/** The resources that a command used from its start to its end. */
export interface Usage {
  /** CPU time of all threads in microseconds, also in the kernel. */
  readonly cpuUs: number
  /** Highest resident memory in bytes. */
  readonly mostBytes: number
}

const CLI = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url))

/** Writes the usage of the process to standard error when it ends. */
const METER = `data:text/javascript,${encodeURIComponent(`
import { writeSync, openSync, readSync } from "node:fs"
process.once("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  writeSync(2, "\\nusage " + JSON.stringify({ cpuUs: userCPUTime + systemCPUTime, mostBytes: maxRSS * 1024 }))
})`)}`

/** Reads a file in chunks and splits it into lines, as the fastest possible reader of a log would. */
const SPLIT = `
const file = openSync(process.argv[1])
const chunk = Buffer.alloc(256 * 1024)
let lines = 0
let rest = ""
for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
  const text = rest + chunk.latin1Slice(0, read)
  let from = 0
  for (let end = text.indexOf("\\n"); end !== -1; end = text.indexOf("\\n", from)) {
    if (text.slice(from, end).length > 0) lines++
    from = end + 1
  }
  rest = text.slice(from)
}
process.stdout.write(String(lines))`

/** Runs the command line, and returns the resources that it used. Rejects if the command fails. */
export function runCommand(...argv: readonly string[]): Promise<Usage> {
  return run([CLI, ...argv])
}

/** Runs the command line with a file as its standard input. */
export async function runCommandOn(path: string, ...argv: readonly string[]): Promise<Usage> {
  const input = await open(path)
  try {
    return await run([CLI, ...argv], input.fd)
  } finally {
    await input.close()
  }
}

/** Reads a file and splits it into lines, in a separate process. */
export function runSplit(path: string): Promise<Usage> {
  return run(["--input-type=module", "--eval", SPLIT, path])
}

function run(argv: readonly string[], input: number | "ignore" = "ignore"): Promise<Usage> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", METER, ...argv], {
      stdio: [input, "ignore", "pipe"],
    })
    let errors = ""
    child.stderr?.on("data", (text: Buffer) => {
      errors += text
    })
    child.once("error", reject).once("close", (code) => {
      const usage = /\nusage (.*)$/.exec(errors)?.[1]
      if (code === 0 && usage !== undefined) resolve(JSON.parse(usage))
      else reject(new Error(`${argv.join(" ")} ended with ${code}: ${errors}`))
    })
  })
}
