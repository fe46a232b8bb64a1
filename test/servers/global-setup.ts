import { findRedis } from "./redis-binary.ts"

/**
 * Finds Redis once before any test, so that it is unpacked only once. If Redis is missing, the run fails with a
 * one-line error.
 */
export default async function setup(): Promise<void> {
  await findRedis()
}
