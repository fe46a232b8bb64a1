import { readFileSync } from "node:fs"
import ts from "typescript"

/** The lines that an option and its counterpart take in formatted code. */
export interface Lines {
  readonly before: number
  readonly after: number
}

/**
 * Returns the lines of each pair in some files, by the pair's name: those of the expression or of the function's body
 * that creates the app. Code that several pairs share, such as a handler, is not counted.
 */
export function linesOfPairs(...urls: readonly URL[]): ReadonlyMap<string, Lines> {
  const found = new Map<string, Lines>()
  for (const url of urls) {
    const file = ts.createSourceFile(url.pathname, readFileSync(url, "utf8"), ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      if (ts.isPropertyAssignment(node) && ts.isObjectLiteralExpression(node.initializer)) {
        const { before, after } = membersOf(node.initializer)
        if (before !== undefined && after !== undefined) {
          const name = ts.isStringLiteral(node.name) ? node.name.text : node.name.getText(file)
          found.set(name, { before: linesOf(before, file), after: linesOf(after, file) })
        }
      }
      ts.forEachChild(node, visit)
    }
    visit(file)
  }
  return found
}

function membersOf(object: ts.ObjectLiteralExpression): Readonly<Record<string, ts.Node | undefined>> {
  const members: Record<string, ts.Node> = {}
  for (const member of object.properties) {
    if (ts.isPropertyAssignment(member)) members[member.name.getText()] = member.initializer
    else if (ts.isMethodDeclaration(member) && member.body) members[member.name.getText()] = member
  }
  return members
}

function linesOf(node: ts.Node, file: ts.SourceFile): number {
  const body = ts.isArrowFunction(node) || ts.isMethodDeclaration(node) ? (node.body ?? node) : node
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line
  const all = lineOf(body.getEnd()) - lineOf(body.getStart(file)) + 1
  return ts.isBlock(body) ? Math.max(1, all - 2) : all
}
