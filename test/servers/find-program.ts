import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { isProgram, oneLine, type UnpackedProgram, unpackedProgram } from "./debian-packages.ts"

const CACHES = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url))

/** A program that tests need, and the places to search for it. */
export interface SearchedProgram<T> extends Pick<UnpackedProgram<T>, "packages" | "standsAlone"> {
  /** The kind of program, such as "Redis server". */
  readonly noun: string
  /** The environment variable that may contain the program's path. */
  readonly variable?: string
  /** The names of the program in the PATH, in order of preference. */
  readonly names: readonly string[]
  /** Folders to search after the folders in the PATH. */
  readonly folders?: readonly string[]
  /** The path of the program in its packages. */
  readonly path: string
  /** The commands that install the program, by operating system. */
  readonly install: string
  /**
   * Resolves to the program at `path`, which must run with the additional environment `env`. `root` is the root of
   * the file system that contains the program. Resolves to undefined if the file is another program or does not run.
   */
  readonly inspect: (
    path: string,
    env: Readonly<Record<string, string>>,
    root: string,
  ) => Promise<T | undefined>
}

/** The places to search. Only tests set other values than the defaults. */
export interface Places {
  readonly env?: NodeJS.ProcessEnv
  /** Folder for the unpacked program. */
  readonly cacheFolder?: string
}

/**
 * Finds a program. Tries the file in the environment variable, then the PATH. If both fail, unpacks the packages of
 * Debian or Ubuntu once into node_modules/.cache, without root and without changing the machine. Rejects with a
 * one-line Error that explains how to get the program.
 */
export async function findProgram<T>(
  searched: SearchedProgram<T>,
  { env = process.env, cacheFolder = join(CACHES, `sluice-${searched.names[0]}`) }: Places = {},
): Promise<T> {
  const { noun, variable, names, folders = [], path, install } = searched
  const inspect: typeof searched.inspect = async (at, added, root) =>
    isProgram(at) ? searched.inspect(at, added, root) : undefined
  const named = variable === undefined ? undefined : env[variable]
  if (named !== undefined && named !== "") {
    const program = await inspect(named, {}, "/")
    if (program === undefined) throw oneLine(`${variable} is ${named}, which is not a ${noun} that runs`)
    return program
  }
  const onPath = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "")
  for (const name of names) {
    for (const folder of [...onPath, ...folders]) {
      const program = await inspect(join(folder, name), {}, "/")
      if (program !== undefined) return program
    }
  }
  try {
    return await unpackedProgram({
      ...searched,
      cacheFolder,
      inspect: (root, libraries) => inspect(join(root, path), libraries, root),
    })
  } catch {
    // The reader of a failed test run needs only this line.
    const orSet = variable === undefined ? "" : ` or set ${variable} to its path`
    throw oneLine(`No ${noun} found: install it (${install})${orSet}`)
  }
}
