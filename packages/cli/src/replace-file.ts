import type { Stats } from "node:fs"
import { chmod, chown, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { UsageError } from "./usage-error.ts"

/**
 * Writes a text to a file, at once: who reads it sees the old text or the new one, never a part. What is there keeps its
 * permissions and its owner, and a link stays one. But for a file whose owner cannot be kept, which is written over in place, and what is no file, a pipe or
 * /dev/stdout, which is written to. `read` is what the text was made of: a file that has other bytes by now is left as it is. Rejects with
 * UsageError.
 */
export async function replaceFile(path: string, text: string, read?: Uint8Array): Promise<void> {
  try {
    const found = await stat(path).catch(() => undefined)
    const isFile = found?.isFile() ?? true
    const target = await realpath(path).catch(() => path)
    // What is in a pipe can be read once, and was.
    const isChanged = async (): Promise<boolean> =>
      read !== undefined && isFile && !(await readFile(target)).equals(read)
    const draft = isFile ? await draftOf(target, text, found) : undefined
    try {
      // As late as can be: no file system replaces a file on the condition that it is unchanged.
      if (await isChanged()) {
        throw new UsageError(`${path} has been changed since it was read, and is left as it is`)
      }
      if (draft === undefined) await writeFile(path, text)
      else await rename(draft, target)
    } catch (error) {
      if (draft !== undefined) await rm(draft, { force: true })
      throw error
    }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`${path} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}

/** The text in a file beside the target, as it is to be there; undefined where it cannot have the owner of what is there. */
async function draftOf(target: string, text: string, found: Stats | undefined): Promise<string | undefined> {
  const draft = `${target}.${process.pid}.tmp`
  const mode = found && found.mode & 0o7777
  try {
    // The umask cuts the mode that a file is made with, so it may be short of what it is to have, and never has more.
    await rm(draft, { force: true })
    await writeFile(draft, text, { flag: "wx", ...(mode !== undefined && { mode }) })
    if (found === undefined) return draft
    const { uid, gid } = await stat(draft)
    const isKept =
      (uid === found.uid && gid === found.gid) ||
      (await chown(draft, found.uid, found.gid).then(
        () => true,
        () => false,
      ))
    if (!isKept) {
      await rm(draft, { force: true })
      return undefined
    }
    // After the owner, with whom some of it would go.
    await chmod(draft, found.mode & 0o7777)
    return draft
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
