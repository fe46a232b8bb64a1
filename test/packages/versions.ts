import { readFileSync } from "node:fs"

// The versions that this repository is tested with, so that a release of somebody else's does not change what is said
// of the packages here. What these bring along is as npm finds it, as it is for a user.
const VERSIONS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...["../../package.json", "../package.json"].flatMap((path) => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"))
    return [dependencies, devDependencies]
  }),
)

/** What npm is told to install of a package that is not ours: `express@5.3.0`. */
export function versionOf(name: string): string {
  const version = VERSIONS[name]
  if (version === undefined) throw new Error(`no package.json of the repository or its tests names ${name}`)
  return `${name}@${version}`
}
