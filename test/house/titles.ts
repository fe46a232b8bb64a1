import ts from "typescript"
import type { Source } from "./sources.ts"

/** A test, and the titles of the groups that contain it. */
export interface Title {
  readonly place: string
  readonly groups: readonly string[]
  readonly text: string
}

/** Returns the name of the function behind `it`, `it.each(rows)`, `it.skipIf(there).concurrent` and so on. */
function rootOf(callee: ts.Expression): string | undefined {
  if (ts.isIdentifier(callee)) return callee.text
  if (ts.isPropertyAccessExpression(callee) || ts.isCallExpression(callee)) return rootOf(callee.expression)
  return ts.isTaggedTemplateExpression(callee) ? rootOf(callee.tag) : undefined
}

/** Returns a title as it is written. Each inserted expression becomes the one word "X". */
function textOf(node: ts.Expression | undefined): string | undefined {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map(({ literal }) => `X${literal.text}`).join("")
}

/** Returns the titles of all tests in these files. */
export function titles(sources: readonly Source[]): Title[] {
  return sources.flatMap(({ path, ast }) => {
    const found: Title[] = []
    const visit = (node: ts.Node, groups: readonly string[]): void => {
      const call = ts.isCallExpression(node) && node.arguments.length > 1 ? node : undefined
      const root = call && rootOf(call.expression)
      const text = call && textOf(call.arguments[0])
      if (text !== undefined && (root === "it" || root === "test")) {
        const { line } = ast.getLineAndCharacterOfPosition(node.getStart())
        found.push({ place: `${path}:${line + 1}`, groups, text })
      }
      // Tests that a helper function adds belong to the groups of its callers.
      const isGroup = root === "describe" || ts.isFunctionDeclaration(node)
      const inner = isGroup ? [...groups, text ?? ""] : groups
      ts.forEachChild(node, (child) => visit(child, inner))
    }
    visit(ast, [])
    return found
  })
}
