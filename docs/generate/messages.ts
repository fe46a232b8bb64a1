// Prints every message that the packages can write: errors, warnings, log lines, and problems of options and rules.
// `pnpm messages packages/service` prints only the messages of that package. "…" stands for a run-time value.

import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Names of members and variables that hold a message. */
const HOLDERS: ReadonlySet<string> = new Set(["message", "accepted", "msg", "detail", "title"])
/** Names of functions whose string arguments are messages. */
const WRITERS: ReadonlySet<string> = new Set([
  ...[
    "once",
    "warnOncePerLogger",
    "says",
    "wrong",
    "warn",
    "error",
    "info",
    "beginRejection",
    "endRejection",
    "choice",
    "only",
  ],
  ...["reject", "fail", "refuse", "UsageError", "LogError"],
])
/** Matches a message. A code, a path or a single word does not match. */
const SENTENCE = /[a-z]{2}.* .*[a-z]/

const parts = process.argv.slice(2).filter((argument) => argument !== "--")
for (const file of sources(parts.length === 0 ? ["packages"] : parts)) {
  const text = readFileSync(`${root}${file}`, "utf8")
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  visit(source, (node, message) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source))
    console.log(`${file}:${line + 1}  ${message}`)
  })
}

function sources(folders: readonly string[]): readonly string[] {
  const listed = execFileSync("git", ["ls-files", "--", ...folders], { cwd: root, encoding: "utf8" })
  return listed
    .trim()
    .split("\n")
    .filter(
      (file) => /^packages\/\w+\/src\/.*\.ts$/.test(file) && !/\.test\.ts$|\/testing\/|\/gen\//.test(file),
    )
}

function visit(node: ts.Node, found: (node: ts.Node, message: string) => void): void {
  for (const holder of textsIn(node)) {
    const message = textOf(holder)
    if (message !== undefined && SENTENCE.test(message)) found(holder, message)
  }
  ts.forEachChild(node, (child) => visit(child, found))
}

/** Returns the expressions of a node that are messages. */
function textsIn(node: ts.Node): readonly ts.Expression[] {
  if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText())) return node.arguments ?? []
  if (ts.isCallExpression(node)) {
    const called = node.expression
    const name = ts.isPropertyAccessExpression(called) ? called.name.text : called.getText()
    return WRITERS.has(name) ? node.arguments : []
  }
  const isHolder =
    (ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)) && HOLDERS.has(node.name.getText())
  if (!isHolder || node.initializer === undefined) return []
  const value = node.initializer
  return ts.isConditionalExpression(value) ? [value.whenTrue, value.whenFalse] : [value]
}

/** Returns the text of an expression with "…" for each value, or undefined if the expression is not a text. */
function textOf(node: ts.Expression): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("")
  }
  if (ts.isParenthesizedExpression(node)) return textOf(node.expression)
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined
  const [left, right] = [textOf(node.left), textOf(node.right)]
  return left === undefined && right === undefined ? undefined : (left ?? "…") + (right ?? "…")
}
