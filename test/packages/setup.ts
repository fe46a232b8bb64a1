import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { findNode, NODES } from "./nodes.ts"
import { packAll, type Tarball } from "./tarballs.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The folders with Node, by version. */
    readonly nodes: Readonly<Record<string, string>>
    /** The tarballs, by the package's name without its scope. */
    readonly tarballs: Readonly<Record<string, Tarball>>
  }
}

/**
 * Packs the packages and downloads every Node once for all checks. If either step fails, the run fails with the
 * step's message.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-tarballs-"))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    const finding = NODES.map(async (version) => [version, await findNode(version)] as const)
    const [tarballs, ...nodes] = await Promise.all([packAll(folder), ...finding])
    project.provide("tarballs", tarballs)
    project.provide("nodes", Object.fromEntries(nodes))
  } catch (error) {
    remove()
    throw error
  }
  return remove
}
