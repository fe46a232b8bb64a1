import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import ts from "typescript"

const require = createRequire(import.meta.url)

/**
 * Returns the syntax tree of a file of a package. `path` is relative to the file to which the package's name
 * resolves. With `from`, the name is resolved from that file, for a dependency of another package.
 */
export function fileOf(packageName: string, path: string, from?: string): ts.SourceFile {
  const { resolve } = from === undefined ? require : createRequire(from)
  const file = join(dirname(resolve(packageName)), path)
  return ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true)
}

/** Returns all nodes of a file, from the top down. */
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
 * Returns the member names of types in a declaration file, sorted and without duplicates. The result for an interface
 * or a class includes the members of the types that it extends in the same file. An alias may be a literal, a union
 * or an intersection. Private members of classes are not included. Throws for a type that the file does not declare,
 * or that is composed in an unsupported way. If it did not throw, a new version of the peer might seem to have no
 * options.
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
    // The caller must remove the members that `Omit` excludes.
    else if (name === "Omit" && first !== undefined) addNode(first)
    else if (name !== "Error") throw new Error(`${file.fileName} extends ${name}, which is not known here`)
  }

  function addNode(node: ts.TypeNode): void {
    if (ts.isTypeLiteralNode(node)) addMembers(node.members)
    else if (ts.isUnionTypeNode(node) || ts.isIntersectionTypeNode(node)) node.types.forEach(addNode)
    else if (ts.isTypeReferenceNode(node)) {
      if (isDeclared(node.typeName.getText(file))) addType(node.typeName.getText(file))
      // A type from another file, such as a framework's request handler, contains no members of the peer.
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

/** Returns the names that a CommonJS package exports at run time, sorted. */
export function exportsOf(packageName: string): string[] {
  return Object.keys(require(packageName) as object).sort()
}

/**
 * Returns the names of the classes, functions and values that a declaration file declares and exports. Types are
 * excluded.
 */
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
