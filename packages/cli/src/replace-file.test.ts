import {
  chmod,
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

test("a file that is not there is made", async () => {
  await replaceFile(path, "new")
  expect(await readFile(path, "utf8")).toBe("new")
  expect(await readdir(folder)).toEqual(["rules.yaml"])
})

test.each([0o600, 0o664, 0o666, 0o444])(
  "a file is replaced by another with its permissions, %o",
  async (mode) => {
    await writeFile(path, "old")
    // More than the umask leaves to a file that is made.
    await chmod(path, mode)
    const before = await stat(path)
    await replaceFile(path, "new")
    const after = await stat(path)
    expect(await readFile(path, "utf8")).toBe("new")
    expect(after.ino).not.toBe(before.ino)
    expect(after.mode).toBe(before.mode)
  },
)

test("a file that is not as it was read is left as it is", async () => {
  await writeFile(path, "old")
  await expect(replaceFile(path, "new", Buffer.from("older"))).rejects.toThrow(
    new UsageError(`${path} has been changed since it was read, and is left as it is`),
  )
  expect(await readFile(path, "utf8")).toBe("old")
  expect(await readdir(folder)).toEqual(["rules.yaml"])
  await replaceFile(path, "new", Buffer.from("old"))
  expect(await readFile(path, "utf8")).toBe("new")
})

test("what a link leads to is replaced, and the link stays", async () => {
  await writeFile(path, "old")
  const link = join(folder, "link.yaml")
  await symlink(path, link)
  await replaceFile(link, "new")
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect(await readFile(path, "utf8")).toBe("new")
})

test("what cannot be written is told, and leaves nothing behind", async () => {
  await mkdir(path)
  await expect(replaceFile(path, "new")).rejects.toThrow(UsageError)
  await expect(replaceFile(join(folder, "no", "where"), "new")).rejects.toThrow(
    /where cannot be written: ENOENT/,
  )
  expect(await readdir(folder)).toEqual(["rules.yaml"])
})
