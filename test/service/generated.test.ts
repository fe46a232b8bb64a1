import { execFileSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, expect, it } from "vitest"

const SERVICE = fileURLToPath(new URL("../../packages/service", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "sluice-generated-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** Returns the files in a folder, keyed by relative path. */
function filesIn(root: string): Record<string, string> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [relative(root, path), readFileSync(path, "utf8")] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  )
}

it("the generated code matches the proto files", () => {
  for (const name of ["proto", "buf.yaml", "buf.gen.yaml"]) {
    cpSync(join(SERVICE, name), join(folder, name), { recursive: true })
  }
  const bin = join(SERVICE, "node_modules", ".bin")
  execFileSync(join(bin, "buf"), ["generate"], {
    cwd: folder,
    env: { ...process.env, PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}` },
  })
  const made = filesIn(join(folder, "src", "gen"))
  expect(Object.keys(made).length).toBeGreaterThan(4)
  expect(filesIn(join(SERVICE, "src", "gen"))).toEqual(made)
})
