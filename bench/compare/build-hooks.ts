import type { ResolveHook } from "node:module"

// Loader hooks of a measured process. They load Sluice from the build of the tree that `initialize` gets. Everything
// else (the benchmark, frameworks and clients) comes from this tree.

let parentURL = ""

export function initialize(bench: string): void {
  parentURL = bench
}

export const resolve: ResolveHook = (specifier, context, nextResolve) =>
  nextResolve(specifier, specifier.startsWith("@sluice/") ? { ...context, parentURL } : context)
