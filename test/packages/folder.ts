import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** The exit code of a command, and its output. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A running command. */
export interface Running {
  /** Returns all output so far. */
  output(): string
  readonly ended: Promise<Ran>
  /** Sends SIGTERM. Resolves to the result of the command. */
  stop(): Promise<Ran>
}

const running = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

/** A folder for files and commands, with its own environment. */
export class Folder {
  readonly path: string
  readonly #env: NodeJS.ProcessEnv

  constructor(path: string, env: NodeJS.ProcessEnv) {
    this.path = path
    this.#env = env
  }

  /** Returns a subfolder with the same environment. */
  inside(name: string): Folder {
    return new Folder(join(this.path, name), this.#env)
  }

  read(file: string): string {
    return readFileSync(join(this.path, file), "utf8")
  }

  write(file: string, text: string): void {
    const path = join(this.path, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }

  /** Runs a command to its end. Rejects with the command's whole output if it fails. */
  async run(command: string, ...args: readonly string[]): Promise<Ran> {
    const ran = await this.start(command, args).ended
    if (ran.code !== 0) {
      throw new Error(`${command} ${args.join(" ")} ended with ${ran.code}\n${ran.stdout}${ran.stderr}`)
    }
    return ran
  }

  /** Starts a command with additional environment variables. The command ends with this process. */
  start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    const child = spawn(command, args, {
      cwd: this.path,
      env: { ...this.#env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    })
    running.add(child)
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (text: Buffer) => {
      stdout += text
    })
    child.stderr.on("data", (text: Buffer) => {
      stderr += text
    })
    const ended = new Promise<Ran>((resolve, reject) => {
      child.once("error", reject).once("close", (code) => {
        running.delete(child)
        resolve({ code, stdout, stderr })
      })
    })
    return {
      output: () => stdout + stderr,
      ended,
      stop: () => {
        child.kill("SIGTERM")
        return ended
      },
    }
  }
}
