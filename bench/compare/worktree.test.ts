import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterEach, beforeEach, expect, it } from "vitest"
import { until } from "../../test/servers/until.ts"
import { Worktree } from "./worktree.ts"

let repository: string
beforeEach(() => {
  repository = realpathSync(mkdtempSync(join(tmpdir(), "sluice-repository-")))
  git("init", "--quiet")
  commit("first")
  commit("second")
})
afterEach(() => rmSync(repository, { recursive: true, force: true }))

function git(...args: readonly string[]): string {
  const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
  return execFileSync("git", ["-C", repository, ...identity, ...args], { encoding: "utf8" })
}

function commit(text: string): void {
  writeFileSync(join(repository, "file"), text)
  git("add", "file")
  git("commit", "--quiet", "--message", text)
}

function isGone(root: string): boolean {
  return !existsSync(root) && !git("worktree", "list").includes(root)
}

it("a worktree contains the requested commit, outside the repository, until remove() is called", async () => {
  const worktree = new Worktree(repository, "HEAD~1")
  expect(readFileSync(join(worktree.root, "file"), "utf8")).toBe("first")
  expect(git("rev-parse", "HEAD~1")).toContain(worktree.commit)
  await worktree.remove()
  expect(isGone(worktree.root)).toBe(true)
  await worktree.remove()
})

it.each(["no-such-branch", "--help", ""])(
  "creating a worktree of %j, which is not a commit, fails with a one-line message",
  (revision) => {
    expect(() => new Worktree(repository, revision)).toThrow(
      `${JSON.stringify(revision)} is not a commit of this repository; name a hash, a branch or a tag.`,
    )
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1)
  },
)

it("Worktree.run rejects with the output of a program that fails", async () => {
  const worktree = new Worktree(repository, "HEAD")
  await expect(worktree.run("sh", ["-c", "cat file no-such-file"])).rejects.toThrow(/second.*no-such-file/s)
  await worktree.remove()
})

it.each([
  ["ends", undefined],
  ["throws", undefined],
  ["waits", "SIGINT"],
  ["waits", "SIGKILL"],
] as const)(
  "a worktree is removed, and its programs end, when the owner %s (signal: %s)",
  async (how, signal) => {
    const { child, root, pid } = await startOwner(how)
    if (signal !== undefined) child.kill(signal)
    await until("the worktree is removed", () => isGone(root))
    if (pid !== undefined) await until("the program has ended", () => !isRunning(pid))
  },
)

/** Starts a process that owns a worktree. If the process waits, its grandchild runs in the worktree. */
async function startOwner(
  how: "ends" | "throws" | "waits",
): Promise<{ child: ChildProcess; root: string; pid: number | undefined }> {
  const script = `
    import { Worktree } from ${JSON.stringify(new URL("./worktree.ts", import.meta.url).href)}
    const worktree = new Worktree(${JSON.stringify(repository)}, "HEAD")
    console.log(worktree.root)
    if (${how === "throws"}) throw new Error("broken")
    if (${how === "waits"}) await worktree.run("sh", ["-c", "exec 2> /dev/null; sh -c 'echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.1; echo > new; done'"])`
  const args = ["--import", "tsx", "--input-type=module", "-e", script]
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] })
  const [root] = (await once(createInterface(child.stdout), "line")) as [string]
  if (how !== "waits") return { child, root, pid: undefined }
  const file = join(root, "pid")
  await until("the program runs", () => existsSync(file))
  return { child, root, pid: Number(readFileSync(file, "utf8")) }
}

/**
 * Whether the process is running. A zombie process, which has ended but was not reaped by its parent, is not running.
 */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" })
  return stdout.trim() !== "" && !stdout.startsWith("Z")
}
