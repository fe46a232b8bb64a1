import type { RedisCommands } from "../commands.ts"

/**
 * The port with one listener of its own on the client, however many stores use it: Node warns of the eleventh listener of one
 * emitter as of a leak. There is none while no store listens.
 */
export function heardOnce(commands: RedisCommands): RedisCommands {
  const listeners = new Set<() => void>()
  let stop: () => void
  return {
    ...commands,
    onReady(listener) {
      // By an object of its own: the same function may be given twice.
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
