import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { librariesIn, oneLine, unpackedProgram } from "../servers/debian-packages.ts"
import { findRedis, type RedisBinary } from "../servers/redis-binary.ts"

/** A server that implements Redis' commands, as Debian packages it. */
export interface Engine {
  /** The name of the product and its minor version, such as "Valkey 8.1". */
  readonly name: string
  /** The suites of Debian that contain this version. */
  readonly suites: readonly string[]
}

/** The engines on which `pnpm test:engines` runs the tests, and which the documents name. */
export const ENGINES: readonly Engine[] = [
  { name: "Redis 7.0", suites: ["bookworm"] },
  { name: "Redis 8.0", suites: ["trixie"] },
  { name: "Valkey 8.0", suites: ["bookworm", "bookworm-backports"] },
  { name: "Valkey 8.1", suites: ["trixie"] },
]

/** Returns the word that chooses an engine on the command line, such as "valkey-8.1". */
export function wordOf({ name }: Engine): string {
  return name.toLowerCase().replace(" ", "-")
}

const CACHE = fileURLToPath(new URL("../../node_modules/.cache/sluice-engines", import.meta.url))

/**
 * Resolves to the server of an engine, which is unpacked once into node_modules/.cache. Rejects with a one-line error
 * if the packages cannot be downloaded or contain another version.
 */
export async function engineServer(engine: Engine): Promise<RedisBinary> {
  const { name, suites } = engine
  const [product = "", version = ""] = name.toLowerCase().split(" ")
  try {
    const found = await unpackedProgram({
      packages: [`${product}-server`, `${product}-tools`],
      suites,
      cacheFolder: join(CACHE, wordOf(engine)),
      inspect: (root) => inspect(root, product),
    })
    if (!found.version.startsWith(`${version}.`)) throw new Error(`Debian has ${found.version} there`)
    return found
  } catch (error) {
    const [reason = ""] = (error instanceof Error ? error.message : String(error))
      .trim()
      .split("\n")
      .slice(-1)
    throw oneLine(`Cannot get ${name} from Debian's ${suites.join(" and ")}: ${reason}`)
  }
}

/**
 * Writes a script for the server and one for its client, which start them with their own C library, because the C
 * library of the machine may be older.
 */
async function inspect(root: string, product: string): Promise<RedisBinary | undefined> {
  const libraries = librariesIn(root)
  const loader = libraries.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /^ld-linux.*\.so\.\d+$/.test(name))
      .map((name) => join(folder, name)),
  )[0]
  if (loader === undefined) return undefined
  const scripts = join(root, "started-by-its-loader")
  mkdirSync(scripts, { recursive: true })
  for (const program of [`${product}-server`, `${product}-cli`]) {
    const command = [loader, "--library-path", libraries.join(":"), join(root, "usr/bin", program)]
    const quoted = command.map((word) => `'${word}'`).join(" ")
    writeFileSync(join(scripts, program), `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 })
  }
  return await findRedis({ env: { SLUICE_REDIS_SERVER: join(scripts, `${product}-server`) } }).catch(
    () => undefined,
  )
}
