import cluster from "node:cluster"
import { afterEach, expect, it, vi } from "vitest"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"

const { isWorker } = cluster
const { send } = process

afterEach(() => {
  Object.assign(cluster, { isWorker })
  Object.assign(process, { send })
  vi.restoreAllMocks()
})

it.each([
  ["a worker", { isWorker: true, isChild: true }, ["SLUICE_LIMIT_PER_WORKER"]],
  ["a worker whose limiters are disabled", { isWorker: true, isChild: true, enabled: false }, []],
  ["a worker with a shared store", { isWorker: true, isChild: true, isShared: true }, []],
  ["another child process", { isWorker: false, isChild: true }, []],
  ["a process without a parent", { isWorker: false, isChild: false }, []],
])("two limiters in %s warn once if each worker would grant the whole limit", (_what, setting, expected) => {
  const {
    isChild,
    enabled = true,
    isShared = false,
  } = setting as typeof setting & { enabled?: boolean; isShared?: boolean }
  Object.assign(cluster, { isWorker: setting.isWorker })
  Object.assign(process, { send: isChild ? () => true : undefined })
  const codes: string[] = []
  const messages: string[] = []
  const log = ({ code }: { readonly code: string }, message: string) => {
    codes.push(code)
    messages.push(message)
  }
  const logger = { warn: log, error: log }
  for (const name of ["one", "other"]) {
    const store = { ...methodsOf(memoryStore()), isShared }
    createLimiter({ name, limit: 5, window: "1 minute", service: "shop", store, enabled, logger })
  }
  expect(codes).toEqual(expected)
  // Check the messages here, because a limiter catches errors that its logger throws.
  const remedy =
    /each worker grants the whole limit\. Share one store between the workers, such as redisStore/
  for (const message of messages) expect(message).toMatch(remedy)
})
