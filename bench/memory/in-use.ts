import { setImmediate } from "node:timers/promises"

/** Heap and what is held outside it; array buffers are in `external`. Promises have settled, garbage is collected. */
export async function memoryInUse(): Promise<number> {
  await setImmediate()
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
