import { type Reflection, ReflectionKind, type RouterTarget } from "typedoc"
import { ModuleRouter } from "typedoc-plugin-markdown"

/**
 * A router with one page for each entry point. The anchor of a declaration is its full name, such as `Limiter.decide`.
 * The plugin's own anchors get a number when a name occurs twice, so a new export would change existing anchors.
 */
export class DoorRouter extends ModuleRouter {
  /** Returns the base name of an entry point's page: "core-kit" for "@sluice/core/kit". */
  override getIdealBaseName({ name }: Reflection): string {
    return pageName(name)
  }

  override buildAnchors(target: RouterTarget): void {
    const reflection = target as Reflection
    // Object types are anonymous, so no page has an anchor for one.
    if (!reflection.isDeclaration() || reflection.kindOf(ReflectionKind.TypeLiteral)) return
    const names: string[] = []
    let page: Reflection = reflection
    for (; !page.kindOf(ReflectionKind.Module) && page.parent !== undefined; page = page.parent) {
      if (page.kindOf(ReflectionKind.TypeLiteral)) return
      names.unshift(page.name)
    }
    const anchor = names.join(".")
    this.anchors.set(reflection, anchor)
    this.fullUrls.set(reflection, `${this.fullUrls.get(page)}#${anchor}`)
    reflection.traverse((child) => {
      this.buildAnchors(child)
      return true
    })
  }
}

/** Returns the name of an entry point's page: "core-kit" for "@sluice/core/kit". */
export function pageName(door: string): string {
  return door.replace(/^@[^/]+\//, "").replaceAll("/", "-")
}
