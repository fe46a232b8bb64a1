import {
  type DeclarationReflection,
  LiteralType,
  makeRecursiveVisitor,
  type ProjectReflection,
  type Reflection,
  ReflectionKind,
  type SignatureReflection,
  type SomeType,
} from "typedoc"

/** The kinds of declarations that a page shows with a name of their own. Each one needs a docstring. */
const NAMED =
  ReflectionKind.Variable |
  ReflectionKind.Function |
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.TypeAlias |
  ReflectionKind.Constructor |
  ReflectionKind.Property |
  ReflectionKind.Method |
  ReflectionKind.Accessor

/**
 * Returns the names of the exports and members without a docstring, such as `Decision.limit`. Members of an object type
 * that is written out in a signature are included.
 */
export function undocumented(project: ProjectReflection): string[] {
  return declarationsOf(project)
    .filter((declaration) => !isDocumented(declaration))
    .map(nameOf)
}

/**
 * Types that describe the clients of other libraries. They need not be exported: a docstring beside them explains them,
 * and their members would not help a user.
 */
const SHAPES = new Set([
  "GlideLike",
  "IoredisLike",
  "IoredisClusterLike",
  "NodeRedisLike",
  "NodeRedisClusterLike",
])

/** Returns the types that signatures mention but no entry point exports, as `Guard.check: Hidden`. */
export function unexported(project: ProjectReflection): string[] {
  const found: string[] = []
  for (const reflection of Object.values(project.reflections)) {
    for (const type of typesOf(reflection)) {
      type.visit(
        makeRecursiveVisitor({
          reference({ symbolId, reflection: target, name, refersToTypeParameter }) {
            const isOwn = symbolId !== undefined && !symbolId.fileName?.includes("/node_modules/")
            if (isOwn && target === undefined && !refersToTypeParameter && !SHAPES.has(name)) {
              found.push(`${nameOf(reflection)}: ${name}`)
            }
          },
        }),
      )
    }
  }
  return [...new Set(found)]
}

function declarationsOf(project: ProjectReflection): DeclarationReflection[] {
  return Object.values(project.reflections).filter(
    (reflection): reflection is DeclarationReflection =>
      reflection.isDeclaration() && reflection.kindOf(NAMED),
  )
}

function isDocumented(declaration: DeclarationReflection): boolean {
  // A discriminator such as `kind: "soft"` explains itself.
  if (declaration.kind === ReflectionKind.Property && declaration.type instanceof LiteralType) return true
  const signatures = signaturesOf(declaration)
  // A constructor without parameters needs no docstring either. It need not even be in the source.
  if (declaration.kind === ReflectionKind.Constructor && !signatures.some(takesAnything)) return true
  return declaration.hasComment() || signatures.some((signature) => signature.hasComment())
}

function signaturesOf({
  signatures = [],
  getSignature,
  setSignature,
}: DeclarationReflection): SignatureReflection[] {
  return [...signatures, getSignature, setSignature].filter((signature) => signature !== undefined)
}

function takesAnything({ parameters = [] }: SignatureReflection): boolean {
  return parameters.length > 0
}

function typesOf(reflection: Reflection): SomeType[] {
  const { type, extendedTypes = [] } = reflection as Partial<DeclarationReflection>
  return [...(type === undefined ? [] : [type]), ...extendedTypes]
}

function nameOf(reflection: Reflection): string {
  return reflection.getFriendlyFullName().replaceAll(".__type", "")
}
