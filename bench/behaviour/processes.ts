import { type ContenderProcess, startContender } from "../contender-process.ts"
import type { AppSetup } from "./app.ts"
import type { AppTask } from "./app-process.ts"
import { AHEAD_MS, type Place, type StartedApp } from "./world.ts"

/** The processes of one contender, which start on demand. Each place has one process. */
export interface Processes {
  /** Starts a process in advance, so that an app starts quickly later. */
  prepare(place: Place): Promise<void>
  start(setup: AppSetup, place: Place): Promise<StartedApp>
  stop(): Promise<void>
}

/** The timeout for starting an app. When it expires, the process is stopped. */
const STARTS_WITHIN_MS = 20_000

export function createProcesses(name: string): Processes {
  const processes = new Map<Place, ContenderProcess>()
  const prepare = async (place: Place): Promise<ContenderProcess> => {
    const running = processes.get(place)
    if (running !== undefined) return running
    const child = startContender(new URL("./app-process.ts", import.meta.url), name, {
      isQuiet: true,
      env: place === "ahead" ? { CLOCK_AHEAD_MS: String(AHEAD_MS) } : {},
    })
    processes.set(place, child)
    await child.ask({ do: "load" } satisfies AppTask)
    return child
  }
  return {
    async prepare(place) {
      await prepare(place)
    },
    async start(setup, place) {
      const child = await prepare(place)
      const ask = <Answer>(task: AppTask): Promise<Answer> => child.ask(task)
      try {
        const port = await within(STARTS_WITHIN_MS, ask<number>({ do: "start", setup }))
        return {
          port,
          memory: () => ask<number>({ do: "memory" }),
          // If the process has ended, the app has stopped too.
          stop: () => ask<void>({ do: "stop", port }).catch(() => forget(place, child)),
        }
      } catch (error) {
        await forget(place, child)
        throw error
      }
    },
    async stop() {
      await Promise.all([...processes.values()].map((one) => one.stop()))
    },
  }

  async function forget(place: Place, child: ContenderProcess): Promise<void> {
    if (processes.get(place) === child) processes.delete(place)
    await child.stop()
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${ms / 1_000} s`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
