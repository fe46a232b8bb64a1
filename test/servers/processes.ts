import { readdirSync, readFileSync } from "node:fs"

/** Whether a process exists. Signal 0 only checks whether the process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A process of this machine. */
export interface RunningProcess {
  readonly pid: number
  /** The process that started it, or process 1 after that process has ended. */
  readonly parent: number
  /** The program and its arguments. */
  readonly command: string
}

/** Returns the processes that were started with an environment variable: `NAME=value`. Returns none except on Linux. */
export function runningWith(variable: string): RunningProcess[] {
  if (process.platform !== "linux") return []
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) return []
    try {
      if (!readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(variable)) return []
      const parent = /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1]
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").join(" ").trim()
      return [{ pid, parent: Number(parent), command }]
    } catch {
      // The process has ended, or belongs to another user.
      return []
    }
  })
}
