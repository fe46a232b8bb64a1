import { readdirSync, readFileSync } from "node:fs"
import ts from "typescript"
import { describe, expect, it } from "vitest"
import { drawPackages } from "../../../docs/pictures/diagrams.ts"
import type { Point } from "../../../docs/pictures/draw.ts"
import { layersOf, withoutImplied } from "../../../docs/pictures/layers.ts"
import { layOut } from "../../../docs/pictures/layout.ts"
import { PACKAGES } from "../../../docs/pictures/packages.ts"
import { ROOT } from "../documents.ts"
import { entries, TWENTY_PACKAGES } from "./twenty-packages.ts"

const SCOPE = "@sluice/"

/** Returns Sluice's packages among these module names, sorted, without the importing package itself. */
function ownAmong(modules: readonly string[], importer: string): string[] {
  const names = modules
    .filter((module) => module.startsWith(SCOPE))
    .map((module) => module.split("/")[1] as string)
  return [...new Set(names)].filter((name) => name !== importer).sort()
}

/** Returns the packages of Sluice that a package needs at run time, according to its package.json. */
function declaredImports(name: string): string[] {
  const manifest = JSON.parse(readFileSync(`${ROOT}packages/${name}/package.json`, "utf8")) as {
    readonly dependencies?: object
    readonly peerDependencies?: object
  }
  return ownAmong(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }), name)
}

/** Returns the packages of Sluice that the sources of a package import, without its tests. */
function importsInCode(name: string): string[] {
  const folder = `${ROOT}packages/${name}/src/`
  const modules = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !/\.test(-d)?\.ts$|(^|\/)testing\//.test(path))
    .flatMap((path) => ts.preProcessFile(readFileSync(folder + path, "utf8")).importedFiles)
    .map(({ fileName }) => fileName)
  return ownAmong(modules, name)
}

describe("docs/pictures/packages.ts", () => {
  it("lists every package", () => {
    expect(PACKAGES.map(({ name }) => name).sort()).toEqual(readdirSync(`${ROOT}packages`).sort())
  })

  it.each(PACKAGES)(
    "lists the same imports of $name as its package.json and its code",
    ({ name, imports }) => {
      expect(declaredImports(name)).toEqual([...imports].sort())
      expect(importsInCode(name)).toEqual([...imports].sort())
    },
  )
})

describe("layersOf", () => {
  it("puts each package above everything that it imports, as low as possible", () => {
    const packages = entries({
      cli: "core logs",
      logs: "rules",
      koa: "core",
      rules: "core",
      core: "",
      client: "",
    })
    expect(layersOf(packages).map((layer) => layer.map(({ name }) => name))).toEqual([
      ["core", "client"],
      ["koa", "rules"],
      ["logs"],
      ["cli"],
    ])
  })

  it("throws for a circular import and for an unknown package", () => {
    expect(() => layersOf(entries({ a: "b", b: "a", c: "" }))).toThrow("in a circle: a, b")
    expect(() => layersOf(entries({ a: "missing" }))).toThrow("missing is imported, but")
  })
})

it("withoutImplied drops an import that other imports imply, directly or over several steps", () => {
  const packages = entries({
    cli: "core logs rules redis",
    logs: "core rules",
    rules: "core",
    redis: "core",
    core: "",
  })
  expect(withoutImplied(packages).map(({ name, imports }) => [name, imports.join(" ")])).toEqual([
    ["cli", "logs redis"],
    ["logs", "rules"],
    ["rules", "core"],
    ["redis", "core"],
    ["core", ""],
  ])
})

describe("layOut for 20 packages with 30 arrows", () => {
  const { boxes, arrows } = layOut(TWENTY_PACKAGES)
  const tops = [...new Set(boxes.map(({ area }) => area.y))]

  it("draws one arrow for each import that no other implies", () => {
    const expected = withoutImplied(TWENTY_PACKAGES).flatMap(({ name, imports }) =>
      imports.map((to) => `${name} > ${to}`),
    )
    expect(arrows.map(({ from, to }) => `${from} > ${to}`).sort()).toEqual(expected.sort())
    expect([boxes.length, arrows.length]).toEqual([20, 30])
  })

  it("centers rows that contain at most four boxes", () => {
    for (const top of tops) {
      const row = boxes.filter(({ area }) => area.y === top).map(({ area }) => area)
      const lefts = row.map(({ x }) => x)
      const rights = row.map(({ x, width }) => x + width)
      expect(row.length).toBeLessThanOrEqual(4)
      expect((Math.min(...lefts) + Math.max(...rights)) / 2).toBe(360)
    }
  })

  it("draws each arrow from the bottom of one box to the top of another", () => {
    const areaOf = (wanted: string) => boxes.find(({ name }) => name.join("") === wanted)?.area
    for (const { from, to, points } of arrows) {
      const [source, target] = [areaOf(from), areaOf(to)]
      expect(points[0]?.[1]).toBe((source?.y ?? 0) + (source?.height ?? 0))
      expect(points.at(-1)).toEqual([(target?.x ?? 0) + 75, target?.y])
    }
  })

  it("separates arrows to different packages, and crosses them only at right angles", () => {
    const segments = arrows.flatMap(({ to, points }) =>
      points.slice(1).map((end, i) => ({ to, ends: [points[i] ?? end, end] as const })),
    )
    const together = segments.flatMap((one) =>
      segments.filter((other) => one.to < other.to && runTogether(one.ends, other.ends)),
    )
    expect(together).toEqual([])
  })
})

type Ends = readonly [Point, Point]

/** Whether two horizontal or two vertical lines are less than 8 pixels apart at any point. */
function runTogether(one: Ends, other: Ends): boolean {
  return ([0, 1] as const).some((across) => {
    const isParallel = one[0][across] === one[1][across] && other[0][across] === other[1][across]
    const [first, second] = [one, other].map((ends) =>
      ends.map((end) => end[1 - across] ?? 0).sort((a, b) => a - b),
    )
    const overlap = Math.min(first?.[1] ?? 0, second?.[1] ?? 0) - Math.max(first?.[0] ?? 0, second?.[0] ?? 0)
    return isParallel && Math.abs(one[0][across] - other[0][across]) < 8 && overlap > 0
  })
}

it("drawPackages describes the imports in words", () => {
  const { description } = drawPackages(entries({ cli: "core logs", logs: "core", koa: "core", core: "" }))
  expect(description).toContain(
    "cli imports logs. logs and koa import core. core imports no other package of Sluice.",
  )
})
