import { execFile } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { oneLine, unpackFile } from "./nodes.ts"

const run = promisify(execFile)

/**
 * The other runtimes on which the packages are tested, with the npm packages that contain them. `printed` is a part of
 * what `--version` prints.
 */
const RUNTIMES = {
  bun: {
    version: "1.4.5",
    printed: "1.4.5",
    path: "bin/bun",
    packages: {
      "linux-x64": "@oven/bun-linux-x64-baseline",
      "linux-arm64": "@oven/bun-linux-aarch64",
      "darwin-x64": "@oven/bun-darwin-x64-baseline",
      "darwin-arm64": "@oven/bun-darwin-aarch64",
    },
  },
  deno: {
    version: "2.9.6",
    printed: "2.9.6",
    path: "deno",
    packages: {
      "linux-x64": "@deno/linux-x64-glibc",
      "linux-arm64": "@deno/linux-arm64-glibc",
      "darwin-x64": "@deno/darwin-x64",
      "darwin-arm64": "@deno/darwin-arm64",
    },
  },
  workerd: {
    version: "1.20261117.1",
    printed: "2026-11-17",
    path: "bin/workerd",
    packages: {
      "linux-x64": "@cloudflare/workerd-linux-64",
      "linux-arm64": "@cloudflare/workerd-linux-arm64",
      "darwin-x64": "@cloudflare/workerd-darwin-64",
      "darwin-arm64": "@cloudflare/workerd-darwin-arm64",
    },
  },
} as const

const CACHE = fileURLToPath(new URL("../../node_modules/.cache/sluice-node/", import.meta.url))

/**
 * Returns the path of a runtime's program. The variable SLUICE_BUN, SLUICE_DENO or SLUICE_WORKERD can name the program.
 * Without the variable, the program is from the registry's package, which is cached in node_modules/.cache. Rejects
 * with a one-line Error if the runtime is not available.
 */
export async function findRuntime(name: keyof typeof RUNTIMES): Promise<string> {
  const variable = `SLUICE_${name.toUpperCase()}`
  const named = process.env[variable]
  if (named !== undefined && named !== "") return named
  const { version, printed, path, packages } = RUNTIMES[name]
  const platform = `${process.platform}-${process.arch}`
  const folder = join(CACHE, `${name}-${version}-${platform}`)
  const runs = (where: string) =>
    run(join(where, name), ["--version"]).then(
      ({ stdout }) => stdout.includes(printed),
      () => false,
    )
  if (!(await runs(folder))) {
    const holder = packages[platform as keyof typeof packages]
    try {
      await unpackFile(`${holder}@${version}`, path, folder, runs)
    } catch (error) {
      throw oneLine(`No ${name} ${version} for ${platform} (${error}): set ${variable} to the path of one`)
    }
  }
  return join(folder, name)
}
