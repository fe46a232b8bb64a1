import { readFileSync } from "node:fs"
import ts from "typescript"

/** The most lines that the counterpart of an option takes in formatted code, as docs/migrate/README.md states. */
const MOST = 4

/**
 * Returns the pairs in the given files whose counterpart takes more lines than the README of the guides states.
 * Counts the lines of the options, of another expression, or of the body of the function that creates the app. Code
 * that several pairs share, such as a handler, is not counted. Pairs for other options are ignored. The option of a
 * pair is its name up to a comma, so "handler, for JSON" belongs to "handler".
 */
export function longCounterparts(options: readonly string[], ...urls: readonly URL[]): string[] {
  const long: string[] = []
  for (const url of urls) {
    const file = ts.createSourceFile(url.pathname, readFileSync(url, "utf8"), ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      if (ts.isPropertyAssignment(node) && ts.isObjectLiteralExpression(node.initializer)) {
        const { before, after } = membersOf(node.initializer)
        const pair = ts.isStringLiteral(node.name) ? node.name.text : node.name.getText(file)
        const isOption = options.includes(pair.replace(/,.*/, ""))
        if (before !== undefined && after !== undefined && isOption && linesOf(after, file) > MOST)
          long.push(pair)
      }
      ts.forEachChild(node, visit)
    }
    visit(file)
  }
  return long
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
  // The braces of options and of a function's body do not count, because they do not change.
  return ts.isBlock(counted) || counted !== body ? Math.max(1, all - 2) : all
}

/** Returns the argument of a call whose only argument is its options. */
function optionsOf(node: ts.Node): ts.ObjectLiteralExpression | undefined {
  if (!ts.isCallExpression(node) || node.arguments.length !== 1) return undefined
  const [only] = node.arguments
  return only !== undefined && ts.isObjectLiteralExpression(only) ? only : undefined
}
