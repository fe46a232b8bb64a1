import { execFile } from "node:child_process"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { isProgram, oneLine, unpackedProgram } from "./debian-packages.ts"

const run = promisify(execFile)

/** A Redis (or Valkey) server that runs on this machine. */
export interface RedisBinary {
  /** Absolute path of `redis-server` or `valkey-server`. */
  readonly server: string
  /** The command-line client that came with the server, if there is one. */
  readonly cli: string | undefined
  /** Extra environment variables for both programs: LD_LIBRARY_PATH for an unpacked Redis. */
  readonly env: Readonly<Record<string, string>>
  /** Version as the server prints it, such as "7.0.15". */
  readonly version: string
}

/** The places to search. Only tests need other values than the defaults. */
export interface Places {
  readonly env?: NodeJS.ProcessEnv
  /** Folder for an unpacked Redis. */
  readonly cacheFolder?: string
}

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/sluice-redis", import.meta.url))

/** The message is one line, which is all that the reader of a failed test run needs. */
const HOW_TO_GET_IT =
  "No Redis server found: install one (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis) " +
  "or set SLUICE_REDIS_SERVER to the path of redis-server"

/**
 * Finds the Redis to test with. Tries the file in SLUICE_REDIS_SERVER, then `redis-server` and `valkey-server` on PATH.
 * Otherwise unpacks the package of Debian or Ubuntu once into node_modules/.cache, without root and without changing
 * the machine. Rejects with an Error with one line that explains how to get Redis.
 */
export async function findRedis(places: Places = {}): Promise<RedisBinary> {
  const env = places.env ?? process.env
  const named = env.SLUICE_REDIS_SERVER
  if (named !== undefined && named !== "") {
    const binary = await inspect(named)
    if (binary === undefined)
      throw oneLine(`SLUICE_REDIS_SERVER is ${named}, which is no Redis server that runs`)
    return binary
  }
  for (const name of ["redis-server", "valkey-server"]) {
    for (const folder of (env.PATH ?? "").split(delimiter)) {
      if (folder === "") continue
      const binary = await inspect(join(folder, name))
      if (binary !== undefined) return binary
    }
  }
  try {
    return await unpackedProgram({
      packages: ["redis-server", "redis-tools"],
      cacheFolder: places.cacheFolder ?? CACHE_FOLDER,
      inspect: (root, env) => inspect(join(root, "usr/bin/redis-server"), env),
    })
  } catch {
    throw oneLine(HOW_TO_GET_IT)
  }
}

/** Returns the binary at a path, with its version. Returns undefined if it does not exist or does not run. */
async function inspect(
  server: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RedisBinary | undefined> {
  if (!isProgram(server)) return undefined
  try {
    const { stdout } = await run(server, ["--version"], { env: { ...process.env, ...env }, timeout: 10_000 })
    const version = /\bv=(\d[\w.-]*)/.exec(stdout)?.[1]
    if (version === undefined) return undefined
    const cli = ["redis-cli", "valkey-cli"].map((name) => join(dirname(server), name)).find(isProgram)
    return { server, cli, env, version }
  } catch {
    return undefined
  }
}
