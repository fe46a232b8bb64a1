import { execFile } from "node:child_process"
import { readFileSync, realpathSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL("../..", import.meta.url))

/** A packed package. */
export interface Tarball {
  /** Its path. */
  readonly file: string
  /** Its size. */
  readonly bytes: number
  /** The paths of the tarball's files. */
  readonly contents: readonly string[]
}

/**
 * Packs every package into a folder, in the same way as for publishing. Returns the tarballs by their names without
 * the scope: "core". The packages must be built. Rejects with pnpm's output.
 */
export async function packAll(into: string): Promise<Record<string, Tarball>> {
  const [command, ...args] = pnpm()
  const packing = ["--recursive", "--filter", "./packages/*", "pack", "--json", "--pack-destination", into]
  const { stdout } = await run(command, [...args, ...packing], { cwd: ROOT, maxBuffer: 2 ** 26 })
  const packed: readonly Packed[] = JSON.parse(stdout)
  return Object.fromEntries(
    packed.map(({ name, filename, files }) => [
      name.replace("@sluice/", ""),
      { file: filename, bytes: statSync(filename).size, contents: files.map(({ path }) => path) },
    ]),
  )
}

/** pnpm's report about a packed package. */
interface Packed {
  readonly name: string
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

/** Returns the command line of pnpm: the one that runs this, or the version that the repository requires. */
export function pnpm(): [string, ...string[]] {
  const running = process.env.npm_execpath ?? ""
  if (/pnpm(\.[cm]?js)?$/.test(running)) return [process.execPath, realpathSync(running)]
  const { packageManager } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8"))
  return ["npx", "-y", packageManager]
}
