import type { RedisCommands } from "../commands.ts"

/**
 * Returns commands that add only one listener to the client, however many stores listen. Node.js warns of a leak at the
 * eleventh listener of an emitter. The listener is removed when the last store stops listening.
 */
export function heardOnce(commands: RedisCommands): RedisCommands {
  const listeners = new Set<() => void>()
  let stop: () => void
  return {
    ...commands,
    onReady(listener) {
      // Create a new function, because the same listener may be added twice.
      const mine = (): void => listener()
      if (listeners.size === 0) {
        stop = commands.onReady(() => {
          for (const each of listeners) each()
        })
      }
      listeners.add(mine)
      return () => {
        if (listeners.delete(mine) && listeners.size === 0) stop()
      }
    },
  }
}
