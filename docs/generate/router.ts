import { type Reflection, ReflectionKind, type RouterTarget } from "typedoc"
import { ModuleRouter } from "typedoc-plugin-markdown"

/**
 * A page for each door, and anchors that are the names of what they lead to: `Limiter.decide`. The plugin's own are
 * numbered where a name occurs twice, so that a new export would change the anchors of others.
 */
export class DoorRouter extends ModuleRouter {
  /** "core-redis" for "@sluice/core/redis". */
  override getIdealBaseName({ name }: Reflection): string {
    return pageName(name)
  }

  override buildAnchors(target: RouterTarget): void {
    const reflection = target as Reflection
    // Of members without a name of their own, no page has an anchor.
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

/** What a door's page is called: "core-redis" for "@sluice/core/redis". */
export function pageName(door: string): string {
  return door.replace(/^@[^/]+\//, "").replaceAll("/", "-")
}
