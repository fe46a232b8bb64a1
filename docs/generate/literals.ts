import { type DeclarationReflection, ReflectionType, type SomeType } from "typedoc"

/** Returns the object types that are written out in a type, including each one in a union or an intersection. */
export function literalsOf(type: SomeType | undefined): DeclarationReflection[] {
  if (type instanceof ReflectionType)
    return type.declaration.signatures === undefined ? [type.declaration] : []
  if (type?.type === "union" || type?.type === "intersection") return type.types.flatMap(literalsOf)
  return []
}
