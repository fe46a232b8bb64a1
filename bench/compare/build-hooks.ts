import type { ResolveHook } from "node:module"

// Loader hooks of a measured process. The hooks load Sluice from the build of the tree that is passed to
// `initialize`. Everything else (the benchmark, frameworks and clients) comes from this tree.

let parentURL = ""

/** For each package or entry point, the entry point that contained its code in earlier commits. */
const EARLIER: Readonly<Record<string, string>> = {
  "@sluice/core/adapters": "@sluice/core",
  "@sluice/core/stores": "@sluice/core",
  "@sluice/otel": "@sluice/core/otel",
  "@sluice/redis": "@sluice/core/redis",
  "@sluice/scale": "@sluice/core",
}

export function initialize(bench: string): void {
  parentURL = bench
}

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  if (!specifier.startsWith("@sluice/")) return nextResolve(specifier, context)
  const ofBuild = { ...context, parentURL }
  const earlier = EARLIER[specifier]
  if (earlier === undefined) return nextResolve(specifier, ofBuild)
  try {
    return await nextResolve(specifier, ofBuild)
  } catch {
    return nextResolve(earlier, ofBuild)
  }
}
