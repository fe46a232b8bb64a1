import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type Block, readBlocks } from "./blocks.ts"

/** The folder of the repository, with a slash at its end. */
export const ROOT: string = fileURLToPath(new URL("../../", import.meta.url))

/** What there is to read, from the folder of the repository: beside the README, all of docs, and what is beside each package. */
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
      .filter((path) => path.endsWith(".md"))
      .map((path) => `docs/${path}`),
  ].sort()
}

/** The blocks of a document, by its path from the folder of the repository. */
export function blocksOf(document: string): Block[] {
  return readBlocks(document, readFileSync(ROOT + document, "utf8"))
}
