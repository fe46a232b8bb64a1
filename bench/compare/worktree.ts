import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Writable } from "node:stream"

/**
 * Removes the worktree when its standard input ends. The input ends when `remove` closes it, and when this process
 * ends in any way, including SIGKILL. An exit handler is not enough, because tsx kills a process that a signal does
 * not end immediately. Each line of the input contains the process group that runs in the worktree, or is empty.
 */
const REMOVE_AT_END = `
while read -r line; do group=$line; done
[ -n "$group" ] && kill -9 "-$group"
for try in 1 2 3 4 5; do rm -rf "$3" && break; sleep 0.2; done
git -C "$1" worktree remove --force "$2"`

/** Runs a program after the watchdog knows its process group. Otherwise, the program could outlive this process. */
const RUN_WHEN_KNOWN = 'read -r go && exec "$@" < /dev/null'

/** A commit in a temporary git worktree, which never outlives this process. */
export class Worktree {
  readonly root: string
  /** The abbreviated hash. */
  readonly commit: string
  readonly #watchdog: ChildProcessByStdio<Writable, null, null>

  /**
   * Checks out a commit of the repository.
   * @throws Error with a one-line message if git does not know the commit.
   */
  constructor(repository: string, revision: string) {
    this.commit = commitOf(repository, revision)
    // Use the real path, as git records it.
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-compare-")))
    this.root = join(folder, "tree")
    // The process is detached, so that it runs in its own process group and Ctrl-C does not end it.
    this.#watchdog = spawn("/bin/sh", ["-c", REMOVE_AT_END, "sh", repository, this.root, folder], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    })
    this.#watchdog.unref()
    git(repository, "worktree", "add", "--quiet", "--detach", this.root, this.commit)
  }

  /**
   * Installs the dependencies from the commit's lockfile and builds the measured packages. Rejects with the output if
   * a step fails.
   */
  async build(): Promise<void> {
    const { packageManager } = JSON.parse(readFileSync(join(this.root, "package.json"), "utf8"))
    const pnpm = ["-y", packageManager as string]
    await this.run("npx", [...pnpm, "install", "--frozen-lockfile", "--prefer-offline"])
    const packages = ["express", "fastify", "koa", "service"].map((name) => `--filter=@sluice/${name}`)
    await this.run("npx", [...pnpm, "exec", "turbo", "run", "build", ...packages])
  }

  /** Runs a program in the worktree. Rejects with its output if it fails. */
  async run(program: string, args: readonly string[]): Promise<void> {
    const child = spawn("/bin/sh", ["-c", RUN_WHEN_KNOWN, "sh", program, ...args], {
      ...{ cwd: this.root, detached: true, stdio: ["pipe", "pipe", "pipe"] },
    })
    this.#watchdog.stdin.write(`${child.pid}\n`, () => child.stdin.end("go\n"))
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk))
    const [code] = await once(child, "close")
    this.#watchdog.stdin.write("\n")
    if (code !== 0) throw new Error(`\`${program} ${args.join(" ")}\` failed in ${this.commit}:\n${output}`)
  }

  /** Kills the processes that run in the worktree, and resolves when the worktree is removed. Idempotent. */
  async remove(): Promise<void> {
    if (this.#watchdog.exitCode !== null) return
    this.#watchdog.ref()
    this.#watchdog.stdin.end()
    await once(this.#watchdog, "exit")
  }
}

function commitOf(repository: string, revision: string): string {
  try {
    return git(repository, "rev-parse", "--verify", "--short", "--end-of-options", `${revision}^{commit}`)
  } catch {
    throw new Error(
      `${JSON.stringify(revision)} is not a commit of this repository; name a hash, a branch or a tag.`,
    )
  }
}

function git(repository: string, ...args: readonly string[]): string {
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"]
  return execFileSync("git", ["-C", repository, ...args], { encoding: "utf8", stdio }).trim()
}
