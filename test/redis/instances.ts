import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import type { App, Order, Tally, Told } from "./asking-instance.ts"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const PROCESS = fileURLToPath(new URL("./worker-process.ts", import.meta.url))
const THREAD = new URL("./worker-thread.ts", import.meta.url)
const CLUSTER_APP = fileURLToPath(new URL("./cluster-app.ts", import.meta.url))

/**
 * The options of Node.js to run TypeScript with the built packages. The tests themselves use the sources, because of
 * `paths` in their tsconfig.
 */
const EXEC_ARGV = ["--import", "tsx"]
const ENV = { ...process.env, TSX_TSCONFIG_PATH: `${ROOT}/tsconfig.base.json` }

const children = new Set<ChildProcess>()

/** Kills the remaining instances. Resolves when they have exited. */
export async function killInstances(): Promise<void> {
  await Promise.all([...children].map(killed))
}

/** One instance of an app, in a process or a worker thread. */
export class Instance {
  /** The instance's wall-clock time when it became ready. */
  startedMs = 0
  /** Units that the instance reported as admitted. */
  admitted = 0
  /** Resolves with the exit code when the instance has exited. */
  readonly gone: Promise<number | null>
  readonly #send: (order: Order) => void
  readonly #done: ((tally: Tally) => void)[] = []
  #ready: () => void = () => {}
  readonly ready: Promise<void> = new Promise((resolve) => {
    this.#ready = resolve
  })

  constructor(send: (order: Order) => void, gone: Promise<number | null>) {
    this.#send = send
    this.gone = gone
  }

  hear(told: Told): void {
    if (told.told === "ready") {
      this.startedMs = told.nowMs
      this.#ready()
    } else if (told.told === "admitted") this.admitted += told.units
    else this.#done.shift()?.(told)
  }

  burst(costs: readonly number[]): Promise<Tally> {
    return this.#ask({ do: "burst", costs })
  }

  /**
   * Makes the instance send requests. Resolves when a request is refused, or when `most` units or a few more were
   * admitted.
   */
  load(most: number = Number.MAX_SAFE_INTEGER): Promise<Tally> {
    return this.#ask({ do: "load", most })
  }

  /**
   * Makes the instance kill itself after `after` admitted units or a few more. Rejects when the instance has exited.
   */
  fall(after: number): Promise<Tally> {
    return this.#ask({ do: "fall", after })
  }

  /**
   * Makes the instance close its limiter and its client. Resolves with the exit code once the instance has exited by
   * itself.
   */
  leave(): Promise<number | null> {
    this.#send({ do: "leave" })
    return this.gone
  }

  /** Rejects if the instance exits before it has responded. */
  #ask(order: Order): Promise<Tally> {
    this.#send(order)
    return new Promise((resolve, reject) => {
      this.#done.push(resolve)
      this.gone.then((code) => reject(new Error(`the instance ended in the middle, with ${code}`)))
    })
  }
}

/** Starts an instance in its own process, with its wall clock ahead by `aheadMs` milliseconds. */
export async function startProcess(app: App, aheadMs = 0): Promise<Instance> {
  const child = forked(PROCESS, app, { CLOCK_AHEAD_MS: `${aheadMs}` })
  const instance = new Instance(
    (order) => child.send(order),
    once(child, "exit").then(([code]) => code as number | null),
  )
  child.on("message", (told) => instance.hear(told as Told))
  await readyOrGone(instance)
  return instance
}

/** Starts an instance in a worker thread of this process. There `--import tsx` has no effect, so code registers tsx. */
export async function startThread(app: App): Promise<Instance> {
  const worker = new Worker(
    `import("tsx/esm/api").then(({ register }) => register()).then(() => import("${THREAD}"))`,
    {
      eval: true,
      env: ENV,
      workerData: app,
    },
  )
  const instance = new Instance(
    (order) => worker.postMessage(order),
    once(worker, "exit").then(([code]) => code as number | null),
  )
  worker.on("message", (told) => instance.hear(told as Told))
  await readyOrGone(instance)
  return instance
}

/** Starts an app under node:cluster. Resolves with its port. */
export async function startClusterApp(app: App): Promise<number> {
  const [{ port }] = (await once(forked(CLUSTER_APP, app, {}), "message")) as [{ port: number }]
  return port
}

/** Starts a script in its own process with the built packages. `killInstances` kills it, too. */
export function forked(file: string, settings: object, env: Record<string, string>): ChildProcess {
  const args = [JSON.stringify(settings)]
  const child = fork(file, args, { cwd: ROOT, execArgv: EXEC_ARGV, env: { ...ENV, ...env } })
  children.add(child)
  child.once("exit", () => children.delete(child))
  return child
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGKILL")
  await gone
}

async function readyOrGone(instance: Instance): Promise<void> {
  const code = await Promise.race([instance.ready, instance.gone])
  if (code !== undefined) throw new Error(`the instance ended before it was ready, with ${code}`)
}
