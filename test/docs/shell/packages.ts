import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { ROOT } from "../documents.ts"

interface Manifest {
  readonly name: string
  readonly version?: string
  readonly packageManager?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** The commands of pnpm itself that documents may call. */
const OWN_COMMANDS = ["exec", "pack"]

/** Returns the mistakes in a call of npm. A call may create a project, or install known packages. */
export function wrongNpm([command, ...packages]: readonly string[]): string | undefined {
  if (command === "init" || command === "pkg") return undefined
  if (command !== "install") return `npm ${command} is a command that nobody looks up`
  return packages.map(unknownPackage).find((wrong) => wrong !== undefined)
}

/**
 * Returns what is wrong with `pnpm@10.34.9 test`. The call may run a script of this folder's package, or a command of
 * pnpm itself.
 */
export function wrongPnpm([name, ...args]: readonly string[], folder: string): string | undefined {
  const { packageManager } = readManifest(".")
  if (name !== packageManager) return `${name} is not ${packageManager}`
  // Flags before the script belong to pnpm. Of these flags, only --filter takes a value.
  const at = args.findIndex((word, i) => !word.startsWith("-") && args[i - 1] !== "--filter")
  const script = args[at] ?? ""
  const isKnown = OWN_COMMANDS.includes(script) || Object.hasOwn(readManifest(folder).scripts ?? {}, script)
  return isKnown ? undefined : `${folder}/package.json has no script "${script}"`
}

/**
 * Returns the mistake in the name of a package that documents install. The package must be one of our packed
 * packages, or a package that the workspace uses.
 */
export function unknownPackage(name: string): string | undefined {
  if (name.startsWith("-")) return undefined
  const folders = readdirSync(`${ROOT}packages`).map((folder) => `packages/${folder}`)
  if (name.endsWith(".tgz")) {
    const isPacked = folders.map(readManifest).some((manifest) => tarballOf(manifest) === basename(name))
    return isPacked ? undefined : `no package is packed as ${basename(name)}`
  }
  const plain = name.replace(/(?<=.)@[^/]*$/, "")
  const isUsed = [".", "test", "examples", "bench", ...folders].some((folder) => {
    const { dependencies, devDependencies } = readManifest(folder)
    return Object.hasOwn({ ...dependencies, ...devDependencies }, plain)
  })
  return isUsed ? undefined : `no package of the workspace uses ${plain}`
}

/** Returns the file name that npm and pnpm use: "sluice-core-1.0.0.tgz". */
function tarballOf({ name, version }: Manifest): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8")) as Manifest
}
