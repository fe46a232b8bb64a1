import type { Stats } from "node:fs"
import { chmod, chown, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { UsageError } from "./usage-error.ts"

/**
 * Replaces the content of a file atomically: readers see either the old text or the new text, never a mixture. An
 * existing file keeps its permissions and owner, and a link stays a link. If the owner cannot be kept, the file is
 * overwritten in place. Writes directly to a pipe, or to a device such as /dev/stdout. `read` contains the bytes on
 * which the text is based. If the file's content differs from these bytes, the file is left unchanged. Rejects with
 * UsageError.
 */
export async function replaceFile(path: string, text: string, read?: Uint8Array): Promise<void> {
  try {
    const found = await stat(path).catch(() => undefined)
    const isFile = found?.isFile() ?? true
    const target = await realpath(path).catch(() => path)
    // Do not check a pipe, because it can be read only once and was read before.
    const isChanged = async (): Promise<boolean> =>
      read !== undefined && isFile && !(await readFile(target)).equals(read)
    const draft = isFile ? await draftOf(target, text, found) : undefined
    try {
      // Check as late as possible, because no file system can check and replace a file atomically.
      if (await isChanged()) {
        throw new UsageError(`${path} has changed since it was read, so it was not overwritten`)
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

/**
 * Writes the text to a draft file beside the target. Returns undefined if the draft cannot have the same owner as the
 * existing file.
 */
async function draftOf(target: string, text: string, found: Stats | undefined): Promise<string | undefined> {
  const draft = `${target}.${process.pid}.tmp`
  const mode = found && found.mode & 0o7777
  try {
    // The umask reduces the mode of a new file, so the draft may have too few permissions, but never too many.
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
    // Set the mode after the owner, because a change of owner clears some of its bits.
    await chmod(draft, found.mode & 0o7777)
    return draft
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
