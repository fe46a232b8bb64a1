import { findRedis } from "./redis-binary.ts"

/** Finds Redis once before any test, so that it is unpacked once, and fails the run with one line when there is none. */
export default async function setup(): Promise<void> {
  await findRedis()
}
