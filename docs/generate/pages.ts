import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type DeclarationReflection, ReflectionKind } from "typedoc"
import type { Model } from "./model.ts"
import { pageName } from "./router.ts"

/** The text of each page by its file name. */
export type Pages = ReadonlyMap<string, string>

/** Returns the pages of the reference: one for each entry point, and README.md, which lists them. */
export async function renderPages({ app, project }: Model): Promise<Pages> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-reference-"))
  try {
    app.options.setValue("outputs", [{ name: "markdown", path: folder }])
    await app.generateOutputs(project)
    const names = readdirSync(folder).filter((name) => name !== "README.md")
    const pages = names.map((name) => [name, tidy(readFileSync(join(folder, name), "utf8"))] as const)
    const doors = project.getChildrenByKind(ReflectionKind.Module)
    return new Map([...pages, ["README.md", contents(doors)] as const])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Warns a reader who is about to edit the page that it is generated. */
export const ORIGIN = "<!-- Made from the docstrings by `pnpm reference`. -->"

function contents(doors: readonly DeclarationReflection[]): string {
  const sorted = [...doors].sort((one, other) => (one.name < other.name ? -1 : 1))
  const rows = sorted.map(({ name, comment }) => {
    const [first = ""] = (comment?.summary ?? [])
      .map(({ text }) => text)
      .join("")
      .split("\n\n")
    return `| [\`${name}\`](${pageName(name)}.md) | ${first.replaceAll("\n", " ")} |`
  })
  const text = `${ORIGIN}
# Reference of the packages

Every export of every package, made from its docstring. The tables of [options](../options.md) and of
[the decision](../decision.md) are shorter; the [command line](../../reference/command-line.md) has a
guide of its own.

| import | what it is |
| --- | --- |
${rows.join("\n")}
`
  return linked(text)
}

/** Returns the plugin's Markdown with the generated-page note and links to documents, without extra blank lines. */
function tidy(text: string): string {
  const [title = "", ...rest] = text.split("\n")
  return `${ORIGIN}\n${title}\n${linked(rest.join("\n"))}`.replace(/\n{3,}/g, "\n\n").replace(/\n+$/, "\n")
}

/** Turns paths of documents in the repository, as docstrings write them, into links. */
function linked(text: string): string {
  return text
    .replace(/(?<![\w/`(])docs\/([\w/.-]+\.md)(#[\w-]+)?/g, "[$&](../../$1$2)")
    .replace(/(?<![\w/`(])@sluice\/(core\/errors\.md)/g, "[$&](../../../packages/$1)")
}
