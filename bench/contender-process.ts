import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"

/** A contender in its own process, so that it shares no heap, timers or garbage with another contender. */
export interface ContenderProcess {
  readonly name: string
  /** Sends a task and resolves to the response. Rejects if the task fails or the process ends. */
  ask<Answer>(task: object): Promise<Answer>
  stop(): Promise<void>
}

type Reply = { readonly answer: unknown } | { readonly error: string }

export interface ContenderOptions {
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Command-line arguments. Default: the contender's name. */
  readonly args?: readonly string[]
  /** Modules to import before the contender's module. */
  readonly imports?: readonly string[]
  /** V8 flags. */
  readonly flags?: readonly string[]
  /** Whether to discard the contender's output. */
  readonly isQuiet?: boolean
}

/** Starts `module` in a new process, which is ready when it has responded to the first task. */
export function startContender(
  module: URL,
  name: string,
  { args = [name], env = {}, imports = [], flags = [], isQuiet = false }: ContenderOptions = {},
): ContenderProcess {
  const child = fork(module, args, {
    execArgv: [...process.execArgv, ...imports.flatMap((url) => ["--import", url]), ...flags, "--expose-gc"],
    env: { ...process.env, NODE_ENV: "production", ...env },
    silent: isQuiet,
  })
  // Drain the pipes, because the process would block on a full pipe.
  child.stdout?.resume()
  child.stderr?.resume()
  return {
    name,
    ask: (task) => ask(child, name, task),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, "exit")
      child.kill()
      await gone
    },
  }
}

/** Responds to each task with the result of `work`. Runs in the contender's process. */
export function answerTasks<Task>(work: (task: Task) => unknown): void {
  process.on("message", async (task: Task) => {
    let reply: Reply
    try {
      reply = { answer: await work(task) }
    } catch (error) {
      reply = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    }
    process.send?.(reply)
  })
  process.on("disconnect", () => process.exit(0))
}

function ask<Answer>(child: ChildProcess, name: string, task: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`${name} ended with ${code}`))
    child.once("exit", onExit)
    child.once("message", (reply: Reply) => {
      child.off("exit", onExit)
      if ("error" in reply) reject(new Error(`${name} failed: ${reply.error}`))
      else resolve(reply.answer as Answer)
    })
    child.send(task, (error) => {
      if (error === null) return
      child.off("exit", onExit)
      reject(new Error(`${name} has ended`, { cause: error }))
    })
  })
}
