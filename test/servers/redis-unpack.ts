import { execFile } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

const PACKAGES = ["redis-server", "redis-tools", "libjemalloc2", "liblzf1"]

/**
 * Unpacks Debian's or Ubuntu's Redis into `folder`, as any user and without installing anything. The server is then
 * usr/bin/redis-server, to be run with `librariesIn(folder)` as LD_LIBRARY_PATH.
 *
 * Two processes may do this at once. The result of the first one stays, and the folder is never incomplete. Rejects if
 * there is no apt, no network or no such package.
 */
export async function unpackRedis(folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  // Use a folder next to the target, so that the rename stays within one file system and is atomic.
  const work = mkdtempSync(join(dirname(folder), ".unpacking-"))
  try {
    const root = join(work, "root")
    const apt = new Apt(work)
    await unpack(await apt.downloadWithFreshLists(PACKAGES), root)
    await addMissingLibraries(root, apt)
    try {
      renameSync(root, folder)
    } catch (error) {
      if (!existsSync(folder)) throw error
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Returns the folders below an unpacked root that contain shared libraries. */
export function librariesIn(root: string): string[] {
  return ["usr/lib", "lib"].flatMap((lib) => {
    try {
      return readdirSync(join(root, lib), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && entry.name.includes("-linux-"))
        .map((entry) => join(root, lib, entry.name))
    } catch {
      return []
    }
  })
}

/** An apt-get that only writes into `work`. */
class Apt {
  readonly #work: string
  #options: readonly string[]

  constructor(work: string) {
    this.#work = work
    for (const folder of ["lists", "cache/archives"]) {
      mkdirSync(join(work, folder, "partial"), { recursive: true })
    }
    this.#options = [
      `Dir::Cache=${join(work, "cache")}`,
      // Otherwise apt, run as root, switches to a user that may not write into this folder.
      "APT::Sandbox::User=root",
      "Acquire::http::Timeout=20",
      "Acquire::https::Timeout=20",
      "Acquire::Retries=1",
    ]
  }

  /** Downloads packages by name, and resolves with the files. Rejects unless all of them were downloaded. */
  async download(packages: readonly string[]): Promise<string[]> {
    const folder = mkdtempSync(join(this.#work, "archives-"))
    await this.#run(folder, "download", ...packages)
    return readdirSync(folder).map((name) => join(folder, name))
  }

  /**
   * Downloads packages with the machine's package lists. If these are missing or out of date, downloads its own lists
   * and uses them from then on.
   */
  async downloadWithFreshLists(packages: readonly string[]): Promise<string[]> {
    try {
      return await this.download(packages)
    } catch {
      this.#options = [...this.#options, `Dir::State::lists=${join(this.#work, "lists")}`]
      await this.#run(this.#work, "update")
      return await this.download(packages)
    }
  }

  async #run(folder: string, ...args: readonly string[]): Promise<void> {
    const options = this.#options.flatMap((option) => ["-o", option])
    await run("apt-get", [...options, ...args], { cwd: folder, timeout: 120_000 })
  }
}

async function unpack(archives: readonly string[], root: string): Promise<void> {
  for (const archive of archives) await run("dpkg", ["-x", archive, root])
}

/** Adds the packages of libraries that the loader does not find, until none is missing. */
async function addMissingLibraries(root: string, apt: Apt): Promise<void> {
  const tried = new Set<string>()
  for (;;) {
    const env = { ...process.env, LD_LIBRARY_PATH: librariesIn(root).join(":") }
    const { stdout } = await run("ldd", [join(root, "usr/bin/redis-server")], { env })
    const missing = [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map(([, library]) => library ?? "")
    if (missing.length === 0) return
    const untried = missing.filter((library) => !tried.has(library))
    if (untried.length === 0) throw new Error(`no package found for ${missing.join(", ")}`)
    for (const library of untried) {
      tried.add(library)
      for (const name of packagesOf(library)) {
        try {
          await unpack(await apt.download([name]), root)
          break
        } catch {
          // This release has no package with this name. Try the next one.
        }
      }
    }
  }
}

/**
 * Returns the packages that may contain a library, by Debian's convention (Policy, section 8.1). `liblzf.so.1` is in
 * liblzf1, and `liblua5.1.so.0` in liblua5.1-0. After the change to a 64-bit time, libssl is in libssl3t64. libcrypto
 * comes with libssl.
 */
function packagesOf(library: string): string[] {
  const [, name = library, version = ""] = /^(.+)\.so\.?(.*)$/.exec(library) ?? []
  const stem = (name === "libcrypto" ? "libssl" : name).toLowerCase()
  const conventional = `${stem}${/\d$/.test(stem) ? "-" : ""}${version}`
  return [conventional, `${conventional}t64`]
}
