import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The members of a package.json that npm shows to users. */
interface Addresses {
  readonly repository?: { readonly url?: string; readonly directory?: string }
  readonly homepage?: string
  readonly bugs?: string | { readonly url?: string }
}

/** Addresses in a package.json, each with the test that a given one passes. `folder` is the path of the package. */
const ADDRESSES: Readonly<Record<string, (manifest: Addresses, folder: string) => boolean>> = {
  repository: ({ repository }, folder) => isAddress(repository?.url) && repository?.directory === folder,
  homepage: ({ homepage }) => isAddress(homepage),
  bugs: ({ bugs }) => isAddress(typeof bugs === "object" ? bugs.url : bugs),
}

/** Links that need the homepage begin with this address, so that one replacement sets them all. */
const PLACEHOLDER = "https://sluice.example/"
/** Names the page for questions. A code host requires its whole address. */
const QUESTIONS = ".github/ISSUE_TEMPLATE/config.yml"

/** Returns what a publisher has to do before `root` can be published, a line for each task. */
export function missingBeforePublishing(root: string): string[] {
  const packages = readdirSync(join(root, "packages")).sort()
  const missing = Object.entries(ADDRESSES).flatMap(([address, isGiven]) => {
    const without = packages.filter((name) => {
      const folder = `packages/${name}`
      return !isGiven(JSON.parse(textOf(join(root, folder, "package.json"))), folder)
    })
    return without.length === 0 ? [] : [`${address}: set it in the package.json of ${without.join(", ")}`]
  })
  if (textOf(join(root, "README.md")).includes("not on npm yet")) {
    missing.push("README.md: remove the sentence that Sluice is not on npm yet")
  }
  const linking = [...packages.map((name) => `packages/${name}/README.md`), QUESTIONS].filter((path) =>
    textOf(join(root, path)).includes(PLACEHOLDER),
  )
  if (linking.length > 0) {
    missing.push(`links: replace ${PLACEHOLDER} with the homepage in ${linking.join(", ")}`)
  }
  const pending = readdirSync(join(root, ".changeset")).filter((file) => file.endsWith(".md"))
  if (pending.length > 0) {
    missing.push(`.changeset: run \`changeset version\`, because ${pending.join(", ")} are in no CHANGELOG`)
  }
  return missing
}

function textOf(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}

function isAddress(text: string | undefined): boolean {
  return text !== undefined && /^(git\+)?https:\/\/[^/\s]+\.[^/\s]+/.test(text) && !isPlaceholder(text)
}

/** True for the domains that are reserved for examples (RFC 2606). */
function isPlaceholder(text: string): boolean {
  return /\bexample(\.(com|net|org))?\b/i.test(text)
}
