import ts from "typescript"
import { codeLines, type Source } from "./sources.ts"

/** A place in the sources, and the number that is counted there. */
export interface Entry {
  readonly place: string
  readonly count: number
}

const mostFirst = (entries: Entry[]): Entry[] => entries.sort((a, b) => b.count - a.count)

/** Returns the name of a function, or of the variable or property whose value it is. Callbacks have no name. */
function nameOf(node: ts.Node): string | undefined {
  if (ts.isConstructorDeclaration(node)) return `${node.parent.name?.text}.constructor`
  const own = (node as ts.NamedDeclaration).name?.getText()
  if (ts.isClassLike(node.parent)) return `${node.parent.name?.text}.${own}`
  if (own !== undefined) return own
  return ts.isVariableDeclaration(node.parent) || ts.isPropertyAssignment(node.parent)
    ? node.parent.name.getText()
    : undefined
}

/** Returns every function that has a name, with its lines of code, the longest first. */
export function functions(sources: readonly Source[]): Entry[] {
  return mostFirst(
    sources.flatMap(({ path, ast }) => {
      const found: Entry[] = []
      const visit = (node: ts.Node): void => {
        const name = ts.isFunctionLike(node) && "body" in node ? nameOf(node) : undefined
        if (name !== undefined) found.push({ place: `${path} ${name}`, count: codeLines(node.getText()) })
        ts.forEachChild(node, visit)
      }
      visit(ast)
      return found
    }),
  )
}

/** Returns every class that extends another, with the number of its ancestors, the deepest first. */
export function inheritance(sources: readonly Source[]): Entry[] {
  const parents = new Map<string, { place: string; parent: string }>()
  const visit = (path: string, node: ts.Node): void => {
    const heritage = ts.isClassLike(node) ? node.heritageClauses : undefined
    const base = heritage?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)?.types[0]
    if (ts.isClassLike(node) && base !== undefined) {
      const name = node.name?.text ?? "class"
      parents.set(name, { place: `${path} ${name}`, parent: base.expression.getText() })
    }
    ts.forEachChild(node, (child) => visit(path, child))
  }
  for (const { path, ast } of sources) visit(path, ast)
  const depthOf = (name: string): number => {
    const found = parents.get(name)
    return found === undefined ? 0 : 1 + depthOf(found.parent)
  }
  return mostFirst([...parents].map(([name, { place }]) => ({ place, count: depthOf(name) })))
}

/** Returns every file with the number of its imports, the largest number first. */
export function imports(sources: readonly Source[]): Entry[] {
  return mostFirst(
    sources.map(({ path, ast }) => ({
      place: path,
      count: ast.statements.filter((each) => ts.isImportDeclaration(each)).length,
    })),
  )
}
