import type { ResolveHook } from "node:module"
import { pathToFileURL } from "node:url"

let root = ""

export function initialize(tree: string): void {
  root = tree
}

export const resolve: ResolveHook = (specifier, context, nextResolve) => {
  const [, name, entry = "index"] = /^@sluice\/(\w+)(?:\/(\w+))?$/.exec(specifier) ?? []
  if (name === undefined) return nextResolve(specifier, context)
  return nextResolve(pathToFileURL(`${root}/packages/${name}/src/${entry}.ts`).href, context)
}
