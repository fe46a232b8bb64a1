import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import ts from "typescript"

const require = createRequire(import.meta.url)

/**
 * The syntax of a file of a package, by its path beside the file that the package's name resolves to; of a package that
 * another one depends on, as seen from a file of that.
 */
export function fileOf(packageName: string, path: string, from?: string): ts.SourceFile {
  const { resolve } = from === undefined ? require : createRequire(from)
  const file = join(dirname(resolve(packageName)), path)
  return ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true)
}

/** All nodes of a file, from the top down. */
export function nodesOf(file: ts.SourceFile): ts.Node[] {
  const nodes: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    nodes.push(node)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return nodes
}

/**
 * The members, each once and sorted, that types of a declaration file have: of an interface or a class with those that it
 * extends there, of an alias of a literal, a union or an intersection. What a class keeps to itself is not told.
 * Throws for a type that the file does not declare or that is put together in a way not known here, so that a peer's new
 * version fails rather than seems to have no options.
 */
export function membersOf(file: ts.SourceFile, ...names: readonly string[]): string[] {
  const found = new Set<string>()
  const all = nodesOf(file)

  function addType(name: string): void {
    const declarations = all.filter(
      (node): node is ts.InterfaceDeclaration | ts.ClassDeclaration | ts.TypeAliasDeclaration =>
        (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) || ts.isTypeAliasDeclaration(node)) &&
        node.name?.text === name,
    )
    if (declarations.length === 0) throw new Error(`${file.fileName} declares no ${name}`)
    for (const declaration of declarations) {
      if (ts.isTypeAliasDeclaration(declaration)) addNode(declaration.type)
      else {
        for (const clause of declaration.heritageClauses ?? []) {
          for (const { expression, typeArguments = [] } of clause.types) addBase(expression, typeArguments)
        }
        addMembers(declaration.members)
      }
    }
  }

  function addBase(base: ts.Expression, [first]: readonly ts.TypeNode[]): void {
    const name = base.getText(file)
    if (isDeclared(name)) addType(name)
    // What it leaves out is left out again by who asks.
    else if (name === "Omit" && first !== undefined) addNode(first)
    else if (name !== "Error") throw new Error(`${file.fileName} extends ${name}, which is not known here`)
  }

  function addNode(node: ts.TypeNode): void {
    if (ts.isTypeLiteralNode(node)) addMembers(node.members)
    else if (ts.isUnionTypeNode(node) || ts.isIntersectionTypeNode(node)) node.types.forEach(addNode)
    else if (ts.isTypeReferenceNode(node)) {
      if (isDeclared(node.typeName.getText(file))) addType(node.typeName.getText(file))
      // A type of another file, such as a framework's request handler, has nothing of the peer's own.
    } else throw new Error(`${file.fileName} has a type that is not known here: ${node.getText(file)}`)
  }

  function addMembers(members: readonly (ts.TypeElement | ts.ClassElement)[]): void {
    for (const member of members) {
      const isPrivate =
        ts.canHaveModifiers(member) &&
        ts.getModifiers(member)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)
      const { name } = member
      if (name !== undefined && !isPrivate)
        found.add(ts.isStringLiteral(name) ? name.text : name.getText(file))
    }
  }

  const isDeclared = (name: string): boolean =>
    all.some(
      (node) =>
        (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) || ts.isTypeAliasDeclaration(node)) &&
        node.name?.text === name,
    )

  for (const name of names) addType(name)
  return [...found].sort()
}

/** The names that a CommonJS package has at run time, sorted. */
export function exportsOf(packageName: string): string[] {
  return Object.keys(require(packageName) as object).sort()
}

/** The names of what a declaration file exports by a declaration: classes, functions and values, no types. */
export function exportedValuesOf(file: ts.SourceFile): string[] {
  const names = file.statements.filter(isExported).flatMap((node) => {
    if (ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node)) return [node.name?.text ?? "default"]
    if (ts.isVariableStatement(node)) {
      return node.declarationList.declarations.map(({ name }) => name.getText(file))
    }
    return []
  })
  return [...new Set(names)].sort()
}

function isExported(node: ts.Node): boolean {
  return (
    ts.canHaveModifiers(node) &&
    (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
  )
}
