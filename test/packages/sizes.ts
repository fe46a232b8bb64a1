import { expect, inject, it } from "vitest"
import { ADAPTERS, PACKAGES } from "./manifests.ts"
import type { Project } from "./project.ts"
import { broughtBy, sizeOf } from "./size.ts"

/**
 * The packages that are installed with the core. docs/decisions gives the reasons. Each is small and none contains a
 * client.
 */
const BROUGHT_BY_CORE = ["cookie", "fastest-levenshtein", "parseurl", "path-to-regexp"]
/** The packages that are installed with an adapter, in addition to the core and its dependencies. */
const BROUGHT_BY_ADAPTER: Readonly<Record<string, readonly string[]>> = {
  "express-rate-limit-store": ["@sluice/redis"],
  fastify: ["fastify-plugin"],
}

/**
 * Registers tests for the packages that an install adds, and prints their sizes. Everything must be installed.
 */
export function itWeighsLittle(project: Project): void {
  const brought = (name: string) => broughtBy(project.installed(`@sluice/${name}`))

  it("of the core adds only the listed packages", () => {
    expect([...brought("core").values()].sort()).toEqual(BROUGHT_BY_CORE)
  })

  it.each(ADAPTERS)("of @sluice/%s adds the core and no framework", (name) => {
    const own = BROUGHT_BY_ADAPTER[name] ?? []
    expect([...brought(name).values()].sort()).toEqual(["@sluice/core", ...BROUGHT_BY_CORE, ...own].sort())
  })

  it("prints sizes", () => {
    const rows = Object.entries(inject("tarballs")).map(([name, { bytes, contents }]) => {
      const own = sizeOf(project.installed(`@sluice/${name}`))
      const others = [...brought(name).keys()]
      const all = others.reduce((sum, folder) => sum + sizeOf(folder), own)
      expect(own).toBeGreaterThan(bytes)
      return [`@sluice/${name}`, kB(bytes), kB(own), `${contents.length}`, `${others.length}`, kB(all)]
    })
    const heads = ["package", "packed", "unpacked", "files", "brings along", "with all that"]
    console.log(`\n${tableOf([heads, ...rows])}\n`)
    expect(rows).toHaveLength(PACKAGES.length)
  })
}

/** Returns a size in units of 1000 bytes, as npm does. */
function kB(bytes: number): string {
  return `${(bytes / 1000).toLocaleString("en", { maximumFractionDigits: bytes < 100_000 ? 1 : 0 })} kB`
}

/** Formats rows in columns: the first column is aligned to the left, and all other columns to the right. */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const cell = (text: string, at: number) =>
    at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0)
  return rows.map((row) => row.map(cell).join("   ")).join("\n")
}
