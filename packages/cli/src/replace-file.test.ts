import { execFileSync } from "node:child_process"
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { replaceFile } from "./replace-file.ts"
import { UsageError } from "./usage-error.ts"

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-replace-"))
  path = join(folder, "rules.yaml")
})
afterEach(() => rm(folder, { recursive: true }))

test("replaceFile creates a file that does not exist", async () => {
  await replaceFile(path, "new")
  expect(await readFile(path, "utf8")).toBe("new")
  expect(await readdir(folder)).toEqual(["rules.yaml"])
})

test.each([0o600, 0o664, 0o666, 0o444])(
  "replaceFile replaces a file with a new file that has the same permissions, %o",
  async (mode) => {
    await writeFile(path, "old")
    // These are more permissions than the umask allows for a new file.
    await chmod(path, mode)
    const before = await stat(path)
    await replaceFile(path, "new")
    const after = await stat(path)
    expect(await readFile(path, "utf8")).toBe("new")
    expect(after.ino).not.toBe(before.ino)
    expect(after.mode).toBe(before.mode)
  },
)

test("replaceFile leaves a file unchanged if its content has changed since it was read", async () => {
  await writeFile(path, "old")
  await expect(replaceFile(path, "new", Buffer.from("older"))).rejects.toThrow(
    new UsageError(`${path} has changed since it was read, so it was not overwritten`),
  )
  expect(await readFile(path, "utf8")).toBe("old")
  expect(await readdir(folder)).toEqual(["rules.yaml"])
  await replaceFile(path, "new", Buffer.from("old"))
  expect(await readFile(path, "utf8")).toBe("new")
})

test("replaceFile replaces the target of a symbolic link and keeps the link", async () => {
  await writeFile(path, "old")
  const link = join(folder, "link.yaml")
  await symlink(path, link)
  await replaceFile(link, "new")
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect(await readFile(path, "utf8")).toBe("new")
})

test("replaceFile writes into a pipe or a device instead of replacing it", async () => {
  const pipe = join(folder, "pipe")
  execFileSync("mkfifo", [pipe])
  const [text] = await Promise.all([readFile(pipe, "utf8"), replaceFile(pipe, "new")])
  expect(text).toBe("new")
  expect((await lstat(pipe)).isFIFO()).toBe(true)
  const link = join(folder, "link")
  await symlink("/dev/null", link)
  await replaceFile(link, "new", Buffer.from("old"))
  expect((await stat("/dev/null")).isCharacterDevice()).toBe(true)
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect((await readdir(folder)).sort()).toEqual(["link", "pipe"])
})

// Only root can create a file of another owner.
test.runIf(process.getuid?.() === 0)(
  "replaceFile keeps the owner of the file when root replaces it",
  async () => {
    await writeFile(path, "old")
    await chown(path, 65_534, 65_533)
    await chmod(path, 0o4640)
    await replaceFile(path, "new")
    const { uid, gid, mode } = await stat(path)
    expect([uid, gid, mode & 0o7777]).toEqual([65_534, 65_533, 0o4640])
    expect(await readFile(path, "utf8")).toBe("new")
  },
)

test.runIf(process.getuid?.() === 0)(
  "replaceFile overwrites the file in place if a new file could not keep the owner (run by root)",
  async () => {
    await writeFile(path, "old")
    await chown(path, 65_534, 65_533)
    await chmod(path, 0o666)
    await chmod(folder, 0o777)
    const before = await stat(path)
    process.seteuid?.(1_000)
    try {
      await replaceFile(path, "new", Buffer.from("old"))
    } finally {
      process.seteuid?.(0)
    }
    const { uid, ino } = await stat(path)
    expect([uid, ino]).toEqual([65_534, before.ino])
    expect(await readFile(path, "utf8")).toBe("new")
    expect(await readdir(folder)).toEqual(["rules.yaml"])
  },
)

test("replaceFile reports a path that cannot be written and leaves no temporary file behind", async () => {
  await mkdir(path)
  await expect(replaceFile(path, "new")).rejects.toThrow(UsageError)
  await expect(replaceFile(join(folder, "no", "where"), "new")).rejects.toThrow(
    /where cannot be written: ENOENT/,
  )
  expect(await readdir(folder)).toEqual(["rules.yaml"])
})
