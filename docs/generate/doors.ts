import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A way into a package: what its users import. */
export interface Door {
  /** As it is imported: "@sluice/core/redis". */
  readonly name: string
  /** Path of its source. */
  readonly source: string
}

/** The doors of every package under `root`, as its `exports` name them: those that have types. */
export function findDoors(root: string): Door[] {
  const packages = join(root, "packages")
  return readdirSync(packages)
    .sort()
    .flatMap((folder) => doorsOf(join(packages, folder)))
}

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, string | { readonly types?: string }>>
}

function doorsOf(folder: string): Door[] {
  const { name, exports = {} }: Manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  return Object.entries(exports).flatMap(([path, target]) => {
    const types = typeof target === "string" ? undefined : target.types
    if (types === undefined) return []
    const source = types.replace("./dist/", "src/").replace(/\.d\.ts$/, ".ts")
    return [{ name: `${name}${path.slice(1)}`, source: join(folder, source) }]
  })
}
