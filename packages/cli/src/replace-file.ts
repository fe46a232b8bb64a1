import { realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { UsageError } from "./usage-error.ts"

/**
 * Writes a text to a file, at once: who reads it sees the old text or the new one, never a part. What is there keeps its
 * permissions, and a link stays one. Rejects with UsageError.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const draft = `${target}.${process.pid}.tmp`
  try {
    const mode = await stat(target).then(
      (found) => found.mode,
      () => undefined,
    )
    // A mode given when a file is made is cut by the process' umask, and never has more than the default.
    await writeFile(draft, text, { ...(mode !== undefined && { mode }) })
    await rename(draft, target)
  } catch (error) {
    await rm(draft, { force: true })
    throw new UsageError(`${path} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}
