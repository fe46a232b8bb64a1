import type { ResolveHook } from "node:module"

// Loader hooks of a measured process: Sluice is the build of the tree that `initialize` gets, and everything else
// (the benchmark, frameworks and clients) is that of this tree.

let parentURL = ""

export function initialize(bench: string): void {
  parentURL = bench
}

export const resolve: ResolveHook = (specifier, context, nextResolve) =>
  nextResolve(specifier, specifier.startsWith("@sluice/") ? { ...context, parentURL } : context)
