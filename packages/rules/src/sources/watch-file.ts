import { type FSWatcher, watch } from "node:fs"
import { basename, dirname } from "node:path"

/** Delay before the file is read, because notifications arrive in bursts and the first one arrives during the write. */
const SETTLE_MS = 50

/**
 * Calls `look` when the file may have changed, with true if the file system has reported this very file. Returns a
 * function that stops watching. Watching uses notifications and also polls every `pollMs`. Polling covers file systems
 * without notifications, and directories that are missing or were replaced. Does not keep the process alive.
 */
export function watchFile(file: string, pollMs: number, look: (isNotified: boolean) => void): () => void {
  const polling = setInterval(() => look(false), pollMs).unref()
  let settling: NodeJS.Timeout | undefined
  let isNotified = false
  const watcher = watchDirectory(dirname(file), (name) => {
    isNotified ||= name === null || name === basename(file)
    settling ??= setTimeout(() => {
      const ofThisFile = isNotified
      settling = undefined
      isNotified = false
      look(ofThisFile)
    }, SETTLE_MS).unref()
  })
  return () => {
    clearInterval(polling)
    clearTimeout(settling)
    watcher?.close()
  }
}

/** Watches the directory instead of the file, because a watch on a file ends when the file is replaced. */
function watchDirectory(directory: string, notify: (name: string | null) => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, (_event, name) => notify(name))
    watcher.on("error", () => watcher.close())
    return watcher
  } catch {
    // Ignore the error: if the directory does not exist or the system has no watchers left, polling is enough.
    return undefined
  }
}
