import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, sep } from "node:path"

/** Returns the size of a package in bytes, without the packages that are installed inside it. */
export function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.slice(folder.length).includes(`${sep}node_modules${sep}`))
    .reduce((bytes, path) => bytes + statSync(path).size, 0)
}

/**
 * Returns the folders of all direct and indirect dependencies of an installed package, by name. Two versions of one
 * package have two folders. Peer dependencies are not included, because they belong to the app. Optional packages for
 * other platforms are not installed.
 */
export function broughtBy(folder: string): Map<string, string> {
  const brought = new Map<string, string>()
  const pending = [folder]
  for (const place of pending) {
    const manifest = JSON.parse(readFileSync(join(place, "package.json"), "utf8"))
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
      const found = resolve(name, place)
      if (found === undefined || brought.has(found)) continue
      brought.set(found, name)
      pending.push(found)
    }
  }
  return brought
}

/** Returns the folder in which Node finds a package that another package imports. */
function resolve(name: string, from: string): string | undefined {
  for (let place = from; ; place = dirname(place)) {
    const folder = join(place, "node_modules", name)
    if (existsSync(folder)) return folder
    if (place === dirname(place)) return undefined
  }
}
