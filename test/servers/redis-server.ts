import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "./free-port.ts"
import { findRedis, type RedisBinary } from "./redis-binary.ts"
import { RespConnection } from "./resp.ts"
import { until } from "./until.ts"

export interface RedisOptions {
  /**
   * Additional arguments of the server, such as `["--appendonly", "yes"]`. The additional arguments override the
   * defaults.
   */
  readonly args?: readonly string[]
  /** A port of 127.0.0.1. Default: a free port below 22768. */
  readonly port?: number
  /** The server's program. Default: the Redis that `findRedis` finds. */
  readonly binary?: RedisBinary
  /** Text of a Sentinel configuration file. If given, the server is a Sentinel. */
  readonly sentinel?: string
}

const HOST = "127.0.0.1"

/** Servers to clean up if this process ends without stopping them. */
const running = new Set<RedisServer>()
process.on("exit", () => {
  for (const server of running) server.abandon()
})

/**
 * Starts a server with its own port on 127.0.0.1 and a temporary folder. The server stores nothing on disk unless
 * `args` enable persistence. Resolves once the server responds to PING. The server ends with this process, even if
 * the process is killed. Rejects with the server's log if it does not start.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const binary = options.binary ?? (await findRedis())
  for (let attempt = 1; ; attempt++) {
    const server = new RedisServer(binary, options.port ?? (await freePort()), options)
    try {
      await server.start()
      return server
    } catch (error) {
      await server.stop()
      const taken = error instanceof Error && error.message.includes("Address already in use")
      if (!taken || options.port !== undefined || attempt === 5) throw error
    }
  }
}

/** A running server, created by `startRedis`. */
export class RedisServer {
  readonly host: string = HOST
  readonly port: number
  readonly #binary: RedisBinary
  readonly #args: readonly string[]
  readonly #folder: string
  readonly #connection: RespConnection
  #child: ChildProcess | undefined
  #watchdog: ChildProcess | undefined

  constructor(binary: RedisBinary, port: number, { args = [], sentinel }: RedisOptions) {
    this.port = port
    this.#binary = binary
    this.#folder = mkdtempSync(join(tmpdir(), "sluice-redis-"))
    this.#connection = new RespConnection(HOST, port)
    const place = ["--bind", HOST, "--port", `${port}`, "--dir", this.#folder]
    if (sentinel === undefined) {
      this.#args = [...place, "--save", "", "--appendonly", "no", ...args]
    } else {
      const file = join(this.#folder, "sentinel.conf")
      writeFileSync(file, sentinel)
      this.#args = [file, "--sentinel", ...place, ...args]
    }
  }

  /** Returns the process id, which changes with a restart. Throws if the server is not running. */
  get pid(): number {
    const pid = this.#child?.pid
    if (pid === undefined) throw new Error(`the server on port ${this.port} is not running`)
    return pid
  }

  /** Whether the process exists. A frozen process also exists. */
  get running(): boolean {
    return this.#child !== undefined
  }

  /**
   * Sends a command over a separate connection. Resolves to the reply, as in `RespConnection.command`: a string, a
   * number, null, or an array. Rejects if the server replies with an error, has stopped, or does not reply within 30
   * s.
   */
  command(...args: readonly (string | number | Buffer)[]): Promise<unknown> {
    return this.#connection.command(...args)
  }

  /** Starts the process unless it is already running. Resolves once the server responds. */
  async start(): Promise<void> {
    if (this.#child !== undefined) return
    const logFile = join(this.#folder, "server.log")
    const log = openSync(logFile, "w")
    // Use a separate process group. Ctrl-C in a terminal then stops only this process, which can still use its
    // servers.
    const child = spawn(this.#binary.server, this.#args, {
      env: { ...process.env, ...this.#binary.env },
      stdio: ["ignore", log, log],
      detached: true,
    })
    closeSync(log)
    let failure: Error | undefined
    child.once("error", (error) => {
      failure = error
      this.#forget(child)
    })
    child.once("exit", () => this.#forget(child))
    child.unref()
    this.#child = child
    running.add(this)
    if (child.pid !== undefined) this.#watchdog = watch(child.pid, this.#folder)
    await until(
      `Redis answers on port ${this.port}`,
      async () => this.#child !== child || (await this.#answersAs(child)),
    )
    if (this.#child !== child) {
      throw new Error(`Redis did not start: ${failure?.message ?? readFileSync(logFile, "utf8").trim()}`)
    }
  }

  /** Freezes the process (SIGSTOP). Connections stay open, and the server replies to nothing. */
  freeze(): void {
    process.kill(this.pid, "SIGSTOP")
  }

  /** Resumes a frozen process (SIGCONT). The process then reads everything that was sent in the meantime. */
  thaw(): void {
    process.kill(this.pid, "SIGCONT")
  }

  /** Kills the process (SIGKILL). Resolves once the process has ended. The server keeps its port and folder. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL")
  }

  /** Terminates the process gracefully if it is running. Then starts it on the same port in the same folder. */
  async restart(): Promise<void> {
    if (this.#child !== undefined) {
      // A frozen process does not react to SIGTERM.
      this.thaw()
      await this.#end("SIGTERM")
    }
    await this.start()
  }

  /** Kills the process and removes its folder. Idempotent. */
  async stop(): Promise<void> {
    await this.kill()
    this.#connection.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Like `stop`, but does not wait. This method is for the exit of this process. */
  abandon(): void {
    this.#watchdog?.kill("SIGKILL")
    this.#child?.kill("SIGKILL")
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const gone = new Promise((resolve) => child.once("exit", resolve))
    child.ref()
    child.kill(signal)
    await gone
  }

  /** Whether the replies are from this child process. Another server may have bound the port. */
  async #answersAs(child: ChildProcess): Promise<boolean> {
    if ((await this.command("PING")) !== "PONG") return false
    return String(await this.command("INFO", "server")).includes(`process_id:${child.pid}\r\n`)
  }

  #forget(child: ChildProcess): void {
    if (this.#child !== child) return
    this.#child = undefined
    this.#watchdog?.kill("SIGKILL")
    this.#watchdog = undefined
    running.delete(this)
  }
}

/**
 * Starts a shell that waits for the end of this process, which closes the shell's input. The shell then kills the
 * server and removes its folder. The shell is needed because no exit handler runs when a test process is killed with
 * -9.
 */
function watch(pid: number, folder: string): ChildProcess {
  const script = 'read line; kill -9 "$1"; rm -rf "$2"'
  const watchdog = spawn("/bin/sh", ["-c", script, "sh", `${pid}`, folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  })
  watchdog.once("error", () => {})
  watchdog.unref()
  // The pipe must not keep this process alive.
  if (watchdog.stdin !== null && "unref" in watchdog.stdin && typeof watchdog.stdin.unref === "function") {
    watchdog.stdin.unref()
  }
  return watchdog
}
