import { execFile } from "node:child_process"
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

/** A program from the packages of Debian or Ubuntu. */
export interface UnpackedProgram<T> {
  /** The packages that contain the program. If the machine lacks their dependencies, these are added. */
  readonly packages: readonly string[]
  /** True if the program runs without the dependencies of its packages, like a program that is written in Go. */
  readonly standsAlone?: boolean
  /**
   * Suites of Debian that contain the packages, such as `["trixie"]`. All dependencies then come from these suites,
   * including the C library, because the machine may run another release. Default: the machine's own package sources.
   */
  readonly suites?: readonly string[]
  /**
   * Folder that stores the unpacked program. The folder contains one subfolder for each distribution and
   * architecture.
   */
  readonly cacheFolder: string
  /**
   * Resolves to the program below `root`, which must run with the additional environment `env`. Resolves to undefined
   * if the program does not run.
   */
  readonly inspect: (root: string, env: Readonly<Record<string, string>>) => Promise<T | undefined>
}

/**
 * Returns a program that was unpacked earlier, or unpacks it. This works as any user, and does not change the
 * machine. Rejects if apt, the network or the package is not available.
 */
export async function unpackedProgram<T>(program: UnpackedProgram<T>): Promise<T> {
  const root = join(program.cacheFolder, platform())
  const inspect = (): Promise<T | undefined> =>
    program.inspect(root, { LD_LIBRARY_PATH: librariesIn(root).join(":") })
  const isThere = existsSync(root)
  const kept = await inspect()
  if (kept !== undefined) return kept
  // The unpacked program ran before, so the machine's own libraries have changed since.
  if (isThere) rmSync(root, { recursive: true, force: true })
  if (process.platform !== "linux") throw new Error(`there are no Debian packages for ${process.platform}`)
  await unpackPackages(program, root)
  const fresh = await inspect()
  if (fresh === undefined) throw new Error(`the program unpacked in ${root} does not run`)
  return fresh
}

/** True if the path is an executable file. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/**
 * Creates an error without a stack trace and a cause. Otherwise, pages of output from apt would hide the line with
 * the advice.
 */
export function oneLine(message: string): Error {
  const error = new Error(message)
  error.stack = `Error: ${message}`
  return error
}

/**
 * Unpacks packages into `folder`, together with their dependencies that the machine lacks. Two processes may do
 * this at the same time. The first result is kept, and the folder is never incomplete.
 */
async function unpackPackages(
  { packages, standsAlone = false, suites = [] }: UnpackedProgram<unknown>,
  folder: string,
): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  // Use a folder next to the target, so that the rename stays within one file system and is atomic.
  const work = mkdtempSync(join(dirname(folder), ".unpacking-"))
  try {
    const root = join(work, "root")
    for (const archive of await new Apt(work, suites).download(packages, standsAlone))
      await run("dpkg", ["-x", archive, root])
    try {
      renameSync(root, folder)
    } catch (error) {
      if (!existsSync(folder)) throw error
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Returns the folders below an unpacked root that contain shared libraries, such as usr/lib/x86_64-linux-gnu. */
export function librariesIn(root: string): string[] {
  return ["usr/lib", "lib"]
    .flatMap((lib) => foldersIn(join(root, lib)).filter((folder) => /-linux-[^/]+$/.test(folder)))
    .flatMap((folder) => [folder, ...foldersIn(folder).filter(hasLibraries)])
}

function foldersIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name))
  } catch {
    return []
  }
}

/**
 * Some libraries are one folder deeper. For example, libpulse finds its own library only in the place of
 * installation.
 */
function hasLibraries(folder: string): boolean {
  return readdirSync(folder).some((name) => /^lib.*\.so(\.|$)/.test(name))
}

/** The keys that sign all suites of Debian. The package debian-archive-keyring contains them. */
const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

/** An apt-get that only writes into `work`. */
class Apt {
  readonly #work: string
  #options: readonly string[]

  constructor(work: string, suites: readonly string[]) {
    this.#work = work
    for (const folder of ["lists", "cache/archives"]) {
      mkdirSync(join(work, folder, "partial"), { recursive: true })
    }
    this.#options = [
      `Dir::Cache=${join(work, "cache")}`,
      // Without this option, apt as root switches to a user that cannot write into this folder.
      "APT::Sandbox::User=root",
      "Acquire::http::Timeout=20",
      "Acquire::https::Timeout=20",
      "Acquire::Retries=1",
      ...(suites.length === 0 ? [] : this.#only(suites)),
    ]
  }

  /** Returns options that replace the machine's sources and its list of installed packages. */
  #only(suites: readonly string[]): readonly string[] {
    const sources = join(this.#work, "sources.list")
    const installed = join(this.#work, "status")
    const source = `deb [signed-by=${KEYS}] http://deb.debian.org/debian`
    writeFileSync(sources, suites.map((suite) => `${source} ${suite} main\n`).join(""))
    writeFileSync(installed, "")
    const files = { "Etc::sourcelist": sources, "Etc::sourceparts": "-", "State::status": installed }
    // Without the last option, apt-get would later report that a package is unknown, and not that the network is down.
    return [
      ...Object.entries(files).map(([name, file]) => `Dir::${name}=${file}`),
      "APT::Update::Error-Mode=any",
    ]
  }

  /**
   * Downloads packages with the machine's package lists, together with their dependencies unless the packages need
   * none. If these lists are missing or out of date, downloads separate lists and uses them.
   */
  async download(packages: readonly string[], standAlone: boolean): Promise<string[]> {
    try {
      return await this.#download(packages, standAlone)
    } catch {
      this.#options = [...this.#options, `Dir::State::lists=${join(this.#work, "lists")}`]
      await this.#run(this.#work, "update")
      return await this.#download(packages, standAlone)
    }
  }

  async #download(packages: readonly string[], standAlone: boolean): Promise<string[]> {
    const folder = mkdtempSync(join(this.#work, "archives-"))
    const missing = standAlone ? [] : await this.#missingFor(folder, packages)
    await this.#run(folder, "download", ...new Set([...packages, ...missing]))
    return readdirSync(folder).map((name) => join(folder, name))
  }

  /** Returns the missing packages that `packages` need on this machine. */
  async #missingFor(folder: string, packages: readonly string[]): Promise<string[]> {
    const simulated = await this.#run(folder, "install", "--simulate", "--no-install-recommends", ...packages)
    return [...simulated.matchAll(/^Inst (\S+) /gm)].map(([, name]) => name ?? "")
  }

  async #run(folder: string, ...args: readonly string[]): Promise<string> {
    const options = this.#options.flatMap((option) => ["-o", option])
    const { stdout } = await run("apt-get", [...options, ...args], { cwd: folder, timeout: 300_000 })
    return stdout
  }
}

/**
 * Returns the platform of a package. The platform is part of the folder's name, because a checkout may be shared with
 * a container of another distribution.
 */
function platform(): string {
  let release = ""
  try {
    release = readFileSync("/etc/os-release", "utf8")
  } catch {
    // The distribution is unknown. In that case, the architecture alone is enough.
  }
  const field = (name: string): string => new RegExp(`^${name}="?([\\w.-]+)`, "m").exec(release)?.[1] ?? "any"
  return `${field("ID")}-${field("VERSION_ID")}-${process.arch}`
}
