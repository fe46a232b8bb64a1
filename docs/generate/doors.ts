import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** An entry point of a package, which is a module that users import. */
export interface Door {
  /** The import specifier, such as "@sluice/redis". */
  readonly name: string
  /** Path of the source file. */
  readonly source: string
}

/** Returns the entry points of every package under `root`: the entries of `exports` in package.json that have types. */
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
