import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { parse } from "yaml"

const ROOT = fileURLToPath(new URL("..", import.meta.url))
/** The folder where pnpm installs packages, each in its own subfolder. */
const INSTALLED = join(ROOT, "node_modules/.pnpm")

interface Manifest {
  readonly name: string
  readonly version: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** Returns the package.json of each installed package. */
function manifests(): readonly Manifest[] {
  return readdirSync(INSTALLED).flatMap((folder) => {
    // "@turbo+linux-64@2.0.0" contains node_modules/@turbo/linux-64. The folder name continues with the versions of
    // peers.
    const name = /^(@[^+]+\+)?[^@]+/.exec(folder)?.[0].replace("+", "/") ?? ""
    const file = join(INSTALLED, folder, "node_modules", name, "package.json")
    return existsSync(file) ? [JSON.parse(readFileSync(file, "utf8"))] : []
  })
}

it("the lockfile contains the binaries of every platform, not only of the platform that wrote the file", () => {
  const { packages } = parse(readFileSync(join(ROOT, "pnpm-lock.yaml"), "utf8"))
  const locked = new Set(Object.keys(packages).map((key) => key.slice(0, key.lastIndexOf("@"))))
  const all = manifests()
  expect(all.map(({ name }) => name)).toContain("turbo")
  const missing = all.flatMap(({ name, version, optionalDependencies = {} }) =>
    Object.keys(optionalDependencies)
      .filter((optional) => !locked.has(optional))
      .map((optional) => `${name}@${version} needs ${optional}`),
  )
  expect(missing).toEqual([])
})
