import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import ts from "typescript"
import { fileOf, nodesOf } from "../declared.ts"

const file = createRequire(import.meta.url).resolve("koa-ratelimit")

/**
 * Returns the options of koa-ratelimit, sorted. The package contains no types, so these are the options that its code
 * reads and its README lists.
 */
export function optionsRead(): { readonly byCode: string[]; readonly byReadme: string[] } {
  const drivers = [
    fileOf("koa-ratelimit", "limiter/memory.js"),
    fileOf("async-ratelimiter", "index.js", file),
  ]
  const byCode = new Set([
    ...readOf(fileOf("koa-ratelimit", "index.js"), ["opts", "opts.headers"]),
    ...drivers.flatMap(takenByConstructor),
  ])
  const readme = readFileSync(join(dirname(file), "README.md"), "utf8")
  const [, section = ""] = readme.split(/^## Options$/m)
  const [list = ""] = section.split(/^## /m)
  const byReadme = [...list.matchAll(/^\* `(\w+)`/gm)].map(([, name = ""]) => name)
  return { byCode: [...byCode].sort(), byReadme: byReadme.sort() }
}

/** Returns the members that a file reads from these objects, with a dot or by destructuring. */
function readOf(source: ts.SourceFile, objects: readonly string[]): string[] {
  const isOne = (node: ts.Node | undefined): boolean => objects.includes(node?.getText(source) ?? "")
  return nodesOf(source).flatMap((node) => {
    if (ts.isPropertyAccessExpression(node) && isOne(node.expression)) return [node.name.text]
    if (ts.isVariableDeclaration(node) && isOne(node.initializer)) return takenApart(node.name)
    return []
  })
}

/** Returns the members that a limiter's constructor destructures from its parameter. */
function takenByConstructor(source: ts.SourceFile): string[] {
  return nodesOf(source)
    .filter(ts.isConstructorDeclaration)
    .flatMap(({ parameters }) => parameters.flatMap(({ name }) => takenApart(name)))
}

function takenApart(name: ts.BindingName): string[] {
  if (!ts.isObjectBindingPattern(name)) return []
  return name.elements.map(({ name: bound, propertyName = bound }) => propertyName.getText())
}
