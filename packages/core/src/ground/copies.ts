import manifest from "../../package.json" with { type: "json" }

/** The version of this package. */
export const VERSION: string = manifest.version

/** A key that all copies of this version of the package share. A process may load several copies of the package. */
export const COPIES: unique symbol = Symbol.for(`@sluice/core ${VERSION}`) as never

/**
 * Makes `instanceof` accept instances of the same class from other copies of this version of the package. Recognizes
 * the class by its name.
 */
export function acceptOtherCopies(type: { readonly prototype: object }): void {
  Object.defineProperty(type.prototype, COPIES, { value: true })
  Object.defineProperty(type, Symbol.hasInstance, { value: isInstance })
}

function isInstance(this: { readonly name: string }, value: unknown): boolean {
  if ((value as { readonly [COPIES]?: true } | null | undefined)?.[COPIES] === undefined) return false
  for (let type = value as object; type !== null; type = Object.getPrototypeOf(type)) {
    if (type.constructor.name === this.name) return true
  }
  return false
}
