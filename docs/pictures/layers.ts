import type { PackageEntry } from "./packages.ts"

/**
 * Returns the layers of packages, the lowest first. The layer of a package is the number of imports on the longest path
 * to a package without imports.
 * @throws Error if packages import each other in a circle, or import a package that is not in the list
 */
export function layersOf(packages: readonly PackageEntry[]): PackageEntry[][] {
  const layers: PackageEntry[][] = []
  let rest = packages
  const placed = new Set<string>()
  while (rest.length > 0) {
    const layer = rest.filter(({ imports }) => imports.every((name) => placed.has(name)))
    if (layer.length === 0) throw new Error(problemOf(packages, rest))
    for (const { name } of layer) placed.add(name)
    rest = rest.filter(({ name }) => !placed.has(name))
    layers.push(layer)
  }
  return layers
}

/** Returns the packages without the imports that other imports imply, because an import of theirs leads there, too. */
export function withoutImplied(packages: readonly PackageEntry[]): PackageEntry[] {
  const reached = new Map<string, ReadonlySet<string>>()
  // From the lowest layer up, so that what an import reaches is known before it is needed.
  for (const { name, imports } of layersOf(packages).flat()) {
    reached.set(name, new Set(imports.flatMap((next) => [next, ...(reached.get(next) ?? [])])))
  }
  return packages.map((entry) => ({
    ...entry,
    imports: entry.imports.filter((name) => !entry.imports.some((other) => reached.get(other)?.has(name))),
  }))
}

function problemOf(packages: readonly PackageEntry[], rest: readonly PackageEntry[]): string {
  const known = packages.map(({ name }) => name)
  const unknown = rest.flatMap(({ imports }) => imports).find((name) => !known.includes(name))
  return unknown === undefined
    ? `These packages import each other in a circle: ${rest.map(({ name }) => name).join(", ")}.`
    : `${unknown} is imported, but it is not in the list of packages.`
}
