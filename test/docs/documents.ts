import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type Block, readBlocks } from "./blocks.ts"

/** The root of the repository, with a slash at the end. */
export const ROOT: string = fileURLToPath(new URL("../../", import.meta.url))

/**
 * Returns the paths of all documents from the root: the README and its neighbors, all of docs, and the documents of
 * each package.
 */
export function findDocuments(): string[] {
  const folders = ["examples", "bench", ...readdirSync(`${ROOT}packages`).map((name) => `packages/${name}`)]
  return [
    ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
    ...folders.flatMap((folder) =>
      readdirSync(ROOT + folder)
        .filter((name) => name.endsWith(".md"))
        .map((name) => `${folder}/${name}`),
    ),
    ...readdirSync(`${ROOT}docs`, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".md") && !path.startsWith(".vitepress/"))
      .map((path) => `docs/${path}`),
  ].sort()
}

/** Returns the blocks of a document, by its path from the root. */
export function blocksOf(document: string): Block[] {
  return readBlocks(document, readFileSync(ROOT + document, "utf8"))
}
