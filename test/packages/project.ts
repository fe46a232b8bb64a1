import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inject } from "vitest"
import { environment } from "./environment.ts"
import { Folder } from "./folder.ts"

/** The `type` in package.json, which determines the kind of the `.js` files next to it and below it. */
export type ModuleSystem = "module" | "commonjs"

export const MODULE_SYSTEMS: readonly ModuleSystem[] = ["module", "commonjs"]

/**
 * Packages that require a later Node than our oldest supported version, but still run on that version. Fastify
 * depends on cookie through light-my-request, which calls only functions that every Node version provides.
 */
const WANTS_IN_VAIN = ["cookie"]

/** A new folder in which npm installs packages for use on one version of Node. */
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
   * Installs packages as a user does. Packages of this repository are given by their folder names, and others by their
   * npm specifier, `express@5`. Returns the packages that require another version of Node, except those that are known
   * to work. npm only warns about them. Rejects with npm's output.
   */
  async install(...wanted: readonly string[]): Promise<string[]> {
    const tarballs = inject("tarballs")
    const named = wanted.map((name) => tarballs[name]?.file ?? name)
    const { stderr } = await this.run("npm", "install", "--loglevel=warn", ...named)
    const unfit = [...stderr.matchAll(/EBADENGINE\s+package: '([^']+)@[^@']+'/g)].map(([, name = ""]) => name)
    return unfit.filter((name) => !WANTS_IN_VAIN.includes(name))
  }

  /** Returns the path of an installed package, or of one of its files. */
  installed(name: string, file = ""): string {
    return join(this.path, "node_modules", name, file)
  }

  /**
   * Returns the folder for programs that use this module system. The programs find the installed packages, as an app
   * in a workspace would.
   */
  programs(type: ModuleSystem): Folder {
    return this.inside(type)
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
