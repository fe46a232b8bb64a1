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

/** What a page shows as a name of its own, and so has to say something of. */
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

/** The exports and members without a docstring, members of objects that a signature spells out too: `Decision.limit`. */
export function undocumented(project: ProjectReflection): string[] {
  return declarationsOf(project)
    .filter((declaration) => !isDocumented(declaration))
    .map(nameOf)
}

/** Shapes of what other libraries make, told by a docstring beside them: their members would tell a user nothing. */
const SHAPES = new Set(["IoredisLike", "IoredisClusterLike", "NodeRedisLike", "NodeRedisClusterLike"])

/** The types that signatures name and no door exports: `Guard.check: Hidden`. */
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
  // A discriminator says itself: `kind: "soft"`.
  if (declaration.kind === ReflectionKind.Property && declaration.type instanceof LiteralType) return true
  const signatures = signaturesOf(declaration)
  // So does a constructor that takes nothing, which need not even be written.
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
