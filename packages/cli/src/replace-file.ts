import { chmod, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { UsageError } from "./usage-error.ts"

/**
 * Writes a text to a file, at once: who reads it sees the old text or the new one, never a part. What is there keeps its
 * permissions, and a link stays one. `read` is what the text was made of: a file that has other bytes by now is left as it
 * is. Rejects with UsageError.
 */
export async function replaceFile(path: string, text: string, read?: Uint8Array): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const draft = `${target}.${process.pid}.tmp`
  try {
    const mode = await stat(target).then(
      (found) => found.mode & 0o7777,
      () => undefined,
    )
    // The umask cuts the mode that a file is made with, so it may be short of what it is to have, and never has more.
    await writeFile(draft, text, { ...(mode !== undefined && { mode }) })
    if (mode !== undefined) await chmod(draft, mode)
    // As late as can be: no file system replaces a file on the condition that it is unchanged.
    const isChanged = read !== undefined && !(await readFile(target)).equals(read)
    if (isChanged) throw new UsageError(`${path} has been changed since it was read, and is left as it is`)
    await rename(draft, target)
  } catch (error) {
    await rm(draft, { force: true })
    if (error instanceof UsageError) throw error
    throw new UsageError(`${path} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}
