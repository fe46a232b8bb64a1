import { findRedis } from "./redis-binary.ts"

/**
 * Finds Redis once before any test, so that it is unpacked only once. If there is none, the run fails with one line.
 */
export default async function setup(): Promise<void> {
  await findRedis()
}
