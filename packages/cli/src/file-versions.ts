import { type OutputLine, tinted } from "./line.ts"
import { replaceFile } from "./replace-file.ts"
import { isJsonName, type OwnedDocument, type ReadFile } from "./rules-file.ts"
import { UsageError } from "./usage-error.ts"
import { withVersions } from "./version-writer.ts"

/** A document of a file, with its version in the table. */
export type VersionedDocument = OwnedDocument & { readonly version: number }

/**
 * Writes the versions into the file of the documents. Returns an empty array if the write succeeds. Otherwise leaves
 * the file unchanged and returns lines with the reason and the versions to write. In both cases, the table already
 * contains the rules.
 */
export async function writeVersions(
  { name, text, bytes }: ReadFile,
  versions: readonly VersionedDocument[],
): Promise<readonly OutputLine[]> {
  try {
    const written = await withVersions(text, isJsonName(name) ? "json" : "yaml", versions)
    if (written === undefined) {
      throw new UsageError(`${name} has a format that versions cannot be written into, so it was not changed`)
    }
    // If the file has more bytes than its text, it begins with a byte order mark, which the text does not contain.
    const mark = bytes.length > Buffer.byteLength(text) ? "\ufeff" : ""
    if (written !== text) await replaceFile(name, mark + written, bytes)
    return []
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return [
      tinted("bad", `warning: ${error.message}`),
      ...versions.map(
        ({ service, version }): OutputLine =>
          `  ${service} is version ${version} in the table: write this version into the file before the next push`,
      ),
    ]
  }
}
