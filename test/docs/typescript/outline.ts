import ts from "typescript"

/** A value that a block states for a statement, as in `decision.remaining // => 99`. */
interface PromisedValue {
  /** The line number in the block, starting at 1. */
  readonly line: number
  /** The position of the statement, without its comment. */
  readonly start: number
  readonly end: number
  /** The code to compare: the expression itself, or the name that was just declared. */
  readonly actual: string
  /** True if the statement declares the name, so that the statement must stay. */
  readonly isDeclaration: boolean
  readonly expected: string
}

/** The contents of a TypeScript block. */
export interface Outline {
  /** Names of values that the block declares at its top level, without imports. */
  readonly declares: readonly string[]
  /**
   * Names that the block uses but neither declares nor imports at its top level, including names of JavaScript and
   * Node.
   */
  readonly free: ReadonlySet<string>
  /** The modules that the block imports. */
  readonly imports: readonly string[]
  readonly promises: readonly PromisedValue[]
}

const PROMISE = /^\/\/ => (.+)$/

/** @throws Error when `// => value` follows code that does not have a single value. */
export function outlineOf(text: string): Outline {
  const source = ts.createSourceFile("block.ts", text, ts.ScriptTarget.ES2023, true)
  const values: string[] = []
  const imported: string[] = []
  const types: string[] = []
  const imports: string[] = []
  const promises: PromisedValue[] = []
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      imports.push((statement.moduleSpecifier as ts.StringLiteral).text)
      imported.push(...importedNames(statement))
    } else if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) values.push(...boundNames(name))
    } else if ((ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) && statement.name) {
      values.push(statement.name.text)
    } else if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
      types.push(statement.name.text)
    }
    const promised = promisedBy(statement, text, source)
    if (promised !== undefined) promises.push(promised)
  }
  const written = text.match(/\/\/ =>/g)?.length ?? 0
  if (written !== promises.length) {
    throw new Error('"// => value" stands behind an expression, or behind "const name = …", at the top level')
  }
  const own = new Set([...values, ...imported, ...types])
  const free = new Set([...mentionedNames(source)].filter((name) => !own.has(name)))
  return { declares: values, free, imports, promises }
}

function promisedBy(statement: ts.Statement, text: string, source: ts.SourceFile): PromisedValue | undefined {
  for (const { pos, end } of ts.getTrailingCommentRanges(text, statement.end) ?? []) {
    const [, expected] = PROMISE.exec(text.slice(pos, end)) ?? []
    if (expected === undefined) continue
    const start = statement.getStart(source)
    const place = {
      line: source.getLineAndCharacterOfPosition(start).line + 1,
      start,
      end: statement.end,
      expected,
    }
    if (ts.isExpressionStatement(statement)) {
      return { ...place, actual: statement.expression.getText(source), isDeclaration: false }
    }
    const [declared] = ts.isVariableStatement(statement) ? statement.declarationList.declarations : []
    if (declared !== undefined && ts.isIdentifier(declared.name)) {
      return { ...place, actual: declared.name.text, isDeclaration: true }
    }
  }
  return undefined
}

function boundNames(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text]
  return name.elements.flatMap((element) => (ts.isBindingElement(element) ? boundNames(element.name) : []))
}

function importedNames({ importClause }: ts.ImportDeclaration): string[] {
  const { name, namedBindings } = importClause ?? {}
  const named =
    namedBindings === undefined
      ? []
      : ts.isNamespaceImport(namedBindings)
        ? [namedBindings.name]
        : namedBindings.elements.map((each) => each.name)
  return [...(name === undefined ? [] : [name]), ...named].map(({ text }) => text)
}

/** Returns the names of values and types, without the names of members. */
function mentionedNames(source: ts.SourceFile): Set<string> {
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && !isMemberName(node)) names.add(node.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

function isMemberName(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent)) return parent.name === node
  if (ts.isMethodDeclaration(parent) || ts.isPropertySignature(parent)) return parent.name === node
  return ts.isBindingElement(parent) && parent.propertyName === node
}
