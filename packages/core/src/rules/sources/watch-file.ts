import { type FSWatcher, watch } from "node:fs"
import { basename, dirname } from "node:path"

/** Notifications come in bursts, and the first of them while the file is still being written. */
const SETTLE_MS = 50

/**
 * Calls `look` whenever the file may have changed, with true when the file system said so of this very file; yields
 * the function that stops it. It listens to notifications and looks every `pollMs` beside them, for file systems that
 * send none and for directories that are not there yet or were replaced. Keeps no process alive.
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

/** The directory, not the file: a watched file that is replaced is never heard of again. */
function watchDirectory(directory: string, notify: (name: string | null) => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, (_event, name) => notify(name))
    watcher.on("error", () => watcher.close())
    return watcher
  } catch {
    // There is no such directory, or this system has no watchers left: polling does without.
    return undefined
  }
}
