import { readFileSync } from "node:fs"

// The versions that this repository is tested with, so that another project's release does not change the results
// here. npm resolves their dependencies, as it does for a user.
const VERSIONS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...["../../package.json", "../package.json"].flatMap((path) => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"))
    return [dependencies, devDependencies]
  }),
)

/** Returns the npm specifier of a package that is not ours: `express@5.3.0`. */
export function versionOf(name: string): string {
  const version = VERSIONS[name]
  if (version === undefined) throw new Error(`no package.json of the repository or its tests names ${name}`)
  return `${name}@${version}`
}
