import { setImmediate } from "node:timers/promises"

/**
 * Returns the bytes in the heap and outside it, after promises have settled and garbage is collected. `external`
 * includes array buffers.
 */
export async function memoryInUse(): Promise<number> {
  await setImmediate()
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
