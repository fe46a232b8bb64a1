import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { type Chapters, intoChapters } from "./chapters.ts"
import { findDoors } from "./doors.ts"
import { undocumented, unexported } from "./gaps.ts"
import { brokenLinks } from "./links.ts"
import { readModel } from "./model.ts"
import { type Pages, renderPages } from "./pages.ts"
import { splitIntoChapters } from "./split.ts"
import { tableProblems } from "./tables.ts"

/** Folder of the pages, relative to the root of the repository. */
export const FOLDER = "docs/reference/api"

/** The reference, and the problems that were found in it. */
export interface Reference {
  readonly pages: Pages
  /** One line for each missing docstring, broken link, incomplete table and similar problem. */
  readonly problems: readonly string[]
}

/** Generates the reference of the packages under `root`, which must contain a tsconfig.json. Writes nothing there. */
export async function makeReference(root: string, chapters: Chapters): Promise<Reference> {
  const doors = findDoors(root)
  const model = await readModel({
    sources: doors.map(({ source }) => source),
    tsconfig: join(root, "tsconfig.json"),
  })
  const { project, warnings } = model
  const introduced = new Set(project.children?.filter((door) => door.hasComment()).map(({ name }) => name))
  const left = (project.children ?? []).flatMap((door) => {
    const own = chapters[door.name]
    return own === undefined ? [] : intoChapters(door, own).map((name) => `${door.name}.${name}`)
  })
  const pages = splitIntoChapters(await renderPages(model), chapters)
  return {
    pages,
    problems: [
      ...warnings,
      ...doors
        .filter(({ name }) => !introduced.has(name))
        .map(({ name, source }) => `${relative(root, source)} has no docstring with "@module ${name}"`),
      ...undocumented(project).map((name) => `${name} has no docstring`),
      ...unexported(project).map((name) => `${name} is not exported, and so nowhere in the reference`),
      ...left.map((name) => `${name} is in no chapter: docs/generate/chapters.ts`),
      ...brokenLinks(pages, join(root, FOLDER)).map((link) => `${link} leads nowhere`),
      ...handWritten(root, "docs").flatMap((page) =>
        tableProblems(page, readFileSync(join(root, page), "utf8"), project),
      ),
    ],
  }
}

/** Returns the names of the files in `folder` that differ from `pages`, are missing, or do not belong there. */
export function stalePages(pages: Pages, folder: string): string[] {
  const there = existsSync(folder) ? readdirSync(folder) : []
  return [...new Set([...pages.keys(), ...there])].filter(
    (name) => !there.includes(name) || readFileSync(join(folder, name), "utf8") !== pages.get(name),
  )
}

function handWritten(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name))
    .filter((page) => !page.startsWith(FOLDER))
}
