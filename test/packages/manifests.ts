import { readdirSync, readFileSync } from "node:fs"

/** The members of a package.json that the checks read. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly bin?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const FOLDER = new URL("../../packages/", import.meta.url)

/** The packages of this repository, by their names without the scope. These are also the names of their folders. */
export const PACKAGES: readonly string[] = readdirSync(FOLDER).sort()

/** Returns the package.json of a package. */
export function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(new URL(`${name}/package.json`, FOLDER), "utf8"))
}

/** The packages that users import. All other packages are programs. */
export const LIBRARIES: readonly string[] = PACKAGES.filter((name) => manifestOf(name).bin === undefined)

/** The libraries that depend on the core and whose README shows an app that limits requests. */
export const ADAPTERS: readonly string[] = LIBRARIES.filter(
  (name) => manifestOf(name).dependencies?.["@sluice/core"] !== undefined,
)

/**
 * The frameworks that the README of a package shows, and that are not peer dependencies, because other frameworks
 * work as well.
 */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  fetch: ["hono", "@hono/node-server"],
  nestjs: ["@nestjs/platform-express", "reflect-metadata", "rxjs"],
}

/**
 * Returns the packages that an app installs next to one of our packages, without types: `["express"]` for "express".
 */
export function frameworksOf(name: string): string[] {
  const { peerDependencies = {}, peerDependenciesMeta = {} } = manifestOf(name)
  const peers = Object.keys(peerDependencies).filter((peer) => peerDependenciesMeta[peer]?.optional !== true)
  return [...peers, ...(SHOWN[name] ?? [])]
}
