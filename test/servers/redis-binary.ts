import { execFile } from "node:child_process"
import { accessSync, constants, existsSync, readFileSync, rmSync, statSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { librariesIn, unpackRedis } from "./redis-unpack.ts"

const run = promisify(execFile)

/** A Redis (or Valkey) server that runs on this machine. */
export interface RedisBinary {
  /** Absolute path of `redis-server` or `valkey-server`. */
  readonly server: string
  /** The command line client that came with it, when there is one. */
  readonly cli: string | undefined
  /** What the environment of both needs beside the process' own: LD_LIBRARY_PATH for an unpacked one. */
  readonly env: Readonly<Record<string, string>>
  /** As the server names it, such as "7.0.15". */
  readonly version: string
}

/** Where to look; the defaults are what every caller but a test wants. */
export interface Places {
  readonly env?: NodeJS.ProcessEnv
  /** Where an unpacked Redis is kept. */
  readonly cacheFolder?: string
}

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/sluice-redis", import.meta.url))

/** One line, since it is all that a reader of a failed test run needs. */
const HOW_TO_GET_IT =
  "No Redis server found: install one (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis) " +
  "or set SLUICE_REDIS_SERVER to the path of redis-server"

/**
 * The Redis to test with: the file that SLUICE_REDIS_SERVER names, else `redis-server` or `valkey-server` on PATH, else
 * Debian's or Ubuntu's package, unpacked once into node_modules/.cache without root and without a trace on the machine.
 * Rejects with an Error of one line that says how to get one.
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
    return await unpacked(join(places.cacheFolder ?? CACHE_FOLDER, platform()))
  } catch {
    throw oneLine(HOW_TO_GET_IT)
  }
}

async function unpacked(folder: string): Promise<RedisBinary> {
  const inFolder = (): Promise<RedisBinary | undefined> =>
    inspect(join(folder, "usr/bin/redis-server"), { LD_LIBRARY_PATH: librariesIn(folder).join(":") })
  const isThere = existsSync(folder)
  const kept = await inFolder()
  if (kept !== undefined) return kept
  // It ran once: the machine's own libraries have changed since.
  if (isThere) rmSync(folder, { recursive: true, force: true })
  if (process.platform !== "linux") throw new Error(`there are no Debian packages for ${process.platform}`)
  await unpackRedis(folder)
  const fresh = await inFolder()
  if (fresh === undefined) throw new Error(`the Redis unpacked in ${folder} does not run`)
  return fresh
}

/** The binary at a path, once it has told its version; undefined when it is not there or does not run. */
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

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Names the machine that a package is for: a checkout may be shared with a container of another distribution. */
function platform(): string {
  let release = ""
  try {
    release = readFileSync("/etc/os-release", "utf8")
  } catch {
    // Not a distribution that says its name; the architecture alone will do.
  }
  const field = (name: string): string => new RegExp(`^${name}="?([\\w.-]+)`, "m").exec(release)?.[1] ?? "any"
  return `${field("ID")}-${field("VERSION_ID")}-${process.arch}`
}

/** A stack or a cause, apt's pages of output, would bury the line that says what to do. */
function oneLine(message: string): Error {
  const error = new Error(message)
  error.stack = `Error: ${message}`
  return error
}
