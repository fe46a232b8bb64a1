import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inject } from "vitest"
import { environment } from "./environment.ts"
import { Folder } from "./folder.ts"

/** What a package.json says that the `.js` files beside and below it are. */
export type ModuleSystem = "module" | "commonjs"

export const MODULE_SYSTEMS: readonly ModuleSystem[] = ["module", "commonjs"]

/**
 * What says that it wants a later Node than the oldest that is supported, and runs on it all the same: Fastify brings
 * cookie by way of light-my-request, which calls only what any Node has.
 */
const WANTS_IN_VAIN = ["cookie"]

/** A fresh folder in which packages are installed with npm and used, on one version of Node. */
export class Project extends Folder {
  constructor(node: string) {
    const folder = inject("nodes")[node]
    if (folder === undefined)
      throw new Error(`Node ${node} has not been fetched: nodes.ts names those that are`)
    super(realpathSync(mkdtempSync(join(tmpdir(), "sluice-project-"))), environment(folder))
    this.write("package.json", JSON.stringify({ name: "app", private: true }))
    this.write(
      ".npmrc",
      "fund=false\naudit=false\nupdate-notifier=false\nprefer-offline=true\nfetch-retries=1\n",
    )
    for (const type of MODULE_SYSTEMS) this.write(`${type}/package.json`, JSON.stringify({ type }))
  }

  /**
   * Installs as a user does: packages of this repository by their folders' names, from their tarballs, and others as npm
   * is told, `express@5`. Yields the packages that want another version of Node, which npm only warns of, but for those
   * that are known to do without. Rejects with what npm wrote.
   */
  async install(...wanted: readonly string[]): Promise<string[]> {
    const tarballs = inject("tarballs")
    const named = wanted.map((name) => tarballs[name]?.file ?? name)
    const { stderr } = await this.run("npm", "install", "--loglevel=warn", ...named)
    const unfit = [...stderr.matchAll(/EBADENGINE\s+package: '(.+)@[^@]+'/g)].map(([, name = ""]) => name)
    return unfit.filter((name) => !WANTS_IN_VAIN.includes(name))
  }

  /** The path of an installed package, or of a file of it. */
  installed(name: string, file = ""): string {
    return join(this.path, "node_modules", name, file)
  }

  /** Where a program is an ES module, or CommonJS, that sees what is installed: as an app of a workspace does. */
  programs(type: ModuleSystem): Folder {
    return this.inside(type)
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
