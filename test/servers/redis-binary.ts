import { execFile } from "node:child_process"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { isProgram } from "./debian-packages.ts"
import { findProgram, type Places } from "./find-program.ts"

const run = promisify(execFile)

/** A Redis (or Valkey) server that runs on this machine. */
export interface RedisBinary {
  /** Absolute path of `redis-server` or `valkey-server`. */
  readonly server: string
  /** The command-line client from the same installation, if it exists. */
  readonly cli: string | undefined
  /** Extra environment variables for both programs: LD_LIBRARY_PATH, which an unpacked Redis needs. */
  readonly env: Readonly<Record<string, string>>
  /** The version that the server prints, such as "7.0.15". */
  readonly version: string
}

/** Finds the Redis for the tests: the file in SLUICE_REDIS_SERVER, or as {@link findProgram} finds it. */
export function findRedis(places?: Places): Promise<RedisBinary> {
  return findProgram(
    {
      noun: "Redis server",
      variable: "SLUICE_REDIS_SERVER",
      names: ["redis-server", "valkey-server"],
      packages: ["redis-server", "redis-tools"],
      path: "usr/bin/redis-server",
      install: "Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis",
      inspect,
    },
    places,
  )
}

async function inspect(
  server: string,
  env: Readonly<Record<string, string>>,
): Promise<RedisBinary | undefined> {
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
