import { answerTasks } from "../contender-process.ts"
import type { Setup, StartServer } from "./setup.ts"

export type Framework = "fastify" | "express" | "koa"

/** A task that starts the server, or that returns the CPU time of the process in microseconds. */
export type Task = ({ readonly start: Framework } & Setup) | { readonly start?: never }

// Load only the framework that is measured.
const SERVERS: Readonly<Record<Framework, () => Promise<{ readonly start: StartServer }>>> = {
  fastify: () => import("./servers/fastify.ts"),
  express: () => import("./servers/express.ts"),
  koa: () => import("./servers/koa.ts"),
}

answerTasks<Task>(async (task) => {
  if (task.start !== undefined) return (await SERVERS[task.start]()).start(task)
  const { user, system } = process.cpuUsage()
  return user + system
})
