import { type DeclarationReflection, ReflectionType, type SomeType } from "typedoc"

/** The objects that a type spells out: each one of a union or an intersection. */
export function literalsOf(type: SomeType | undefined): DeclarationReflection[] {
  if (type instanceof ReflectionType)
    return type.declaration.signatures === undefined ? [type.declaration] : []
  if (type?.type === "union" || type?.type === "intersection") return type.types.flatMap(literalsOf)
  return []
}
