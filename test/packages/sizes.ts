import { expect, inject, it } from "vitest"
import { FRAMEWORKS } from "./checks.ts"
import type { Project } from "./project.ts"
import { broughtBy, sizeOf } from "./size.ts"

/** What an install of the core brings along, as docs/decisions tell why; each is small and none has a client in it. */
const BROUGHT_BY_CORE = ["cookie", "fastest-levenshtein", "parseurl", "path-to-regexp", "yaml"]
/** What an adapter brings beside the core and what that brings. */
const BROUGHT_BY_ADAPTER: Readonly<Record<string, readonly string[]>> = { fastify: ["fastify-plugin"] }

/** States what an install of each package brings along, and prints what it weighs. Everything has to be installed. */
export function itWeighsLittle(project: Project): void {
  const brought = (name: string) => broughtBy(project.installed(`@sluice/${name}`))

  it("brings along with the core what it says", () => {
    expect([...brought("core").values()].sort()).toEqual(BROUGHT_BY_CORE)
  })

  it.each(FRAMEWORKS)("brings along with @sluice/%s the core and no framework", (name) => {
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
    expect(rows.length).toBe(7)
  })
}

/** In units of 1000 bytes, as npm tells sizes. */
function kB(bytes: number): string {
  return `${(bytes / 1000).toLocaleString("en", { maximumFractionDigits: bytes < 100_000 ? 1 : 0 })} kB`
}

/** Rows in columns: texts to the left, figures to the right. */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const cell = (text: string, at: number) =>
    at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0)
  return rows.map((row) => row.map(cell).join("   ")).join("\n")
}
