import { readFileSync } from "node:fs"
import ts from "typescript"

/** The lines that an option and its counterpart take in formatted code. */
export interface Lines {
  readonly before: number
  readonly after: number
}

/**
 * Returns the lines of each pair in some files, by the pair's name: those of the options, of another expression or of
 * the function's body that creates the app. Code that several pairs share, such as a handler, is not counted.
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

/**
 * Returns what the column "lines" of a guide says about some names, such as "1 → 6": the lines of the pair that takes the
 * most after the change. A pair belongs to the name before a comma: "handler, for JSON". Without a pair, the cell is empty.
 */
export function linesCell(names: readonly string[], pairs: ReadonlyMap<string, Lines>): string {
  const [longest] = [...pairs]
    .filter(([pair]) => names.includes(pair.replace(/,.*/, "")))
    .map(([, lines]) => lines)
    .sort((a, b) => b.after - a.after || b.before - a.before)
  return longest === undefined ? "" : `${longest.before} → ${longest.after}`
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
  const counted = optionsOf(body) ?? body
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line
  const all = lineOf(counted.getEnd()) - lineOf(counted.getStart(file)) + 1
  // The braces of options and of a function's body stay the same.
  return ts.isBlock(counted) || counted !== body ? Math.max(1, all - 2) : all
}

/** Returns the argument of a call that takes only options. */
function optionsOf(node: ts.Node): ts.ObjectLiteralExpression | undefined {
  if (!ts.isCallExpression(node) || node.arguments.length !== 1) return undefined
  const [only] = node.arguments
  return only !== undefined && ts.isObjectLiteralExpression(only) ? only : undefined
}
