// Import the clock first, so that it is ahead before anything else is loaded.
import "../../test/redis/clock-ahead.ts"
import { answerTasks } from "../contender-process.ts"
import type { AppSetup, RunningApp } from "./app.ts"
import { contenderOf } from "./contenders.ts"

/**
 * A task for the process. "load" prepares it, "start" starts an app and returns its port, and "stop" stops that app.
 * "memory" returns the bytes in use after garbage collection.
 */
export type AppTask =
  | { readonly do: "load" }
  | { readonly do: "start"; readonly setup: AppSetup }
  | { readonly do: "stop"; readonly port: number }
  | { readonly do: "memory" }

const contender = contenderOf(process.argv[2] ?? "")
const apps = new Map<number, RunningApp>()

answerTasks<AppTask>(async (task) => {
  switch (task.do) {
    case "load": {
      // The first app of a process makes V8 compile the framework. Start it before a drill, so that the drill does
      // not wait for the compilation.
      const start = await contender.load()
      await (await start({ limits: [{ limit: 1, windowMs: 1_000 }], storeTimeoutMs: 1_000 })).close()
      return
    }
    case "start": {
      const start = await contender.load()
      const app = await start(task.setup)
      apps.set(app.port, app)
      return app.port
    }
    case "stop": {
      const app = apps.get(task.port)
      apps.delete(task.port)
      return app?.close()
    }
    case "memory": {
      globalThis.gc?.()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
  }
})
