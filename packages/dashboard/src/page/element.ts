import { drawSteps, type Steps, stackedSeries } from "../../../../pages/browser/steps-plot.ts"

/** What an element contains: text, which never becomes markup, or elements. `false` and `undefined` add nothing. */
export type PageContent = PageElement | string | number | false | undefined | readonly PageContent[]

/** The description of an element. */
export interface PageElement {
  readonly tag: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly PageContent[]
  /** A plot, which replaces `children`. */
  readonly plot?: { readonly label: string; readonly steps: Steps }
}

/** Describes an element. An element with another `key` than before is replaced. */
export function h(
  tag: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: PageContent[]
): PageElement {
  return { tag, attributes, children }
}

const SVG = new Set(["svg", "path"])
const redraws = new WeakMap<Element, (steps: Steps) => void>()

/**
 * Changes the contents of an element into the described contents. Elements that remain are the same as before, so they
 * keep the focus, the selection, and whether details are open.
 */
export function render(parent: Element, ...contents: PageContent[]): void {
  const wanted = flat(contents)
  for (const [i, content] of wanted.entries()) {
    const present = parent.childNodes[i]
    if (typeof content === "string") {
      if (present instanceof Text) {
        if (present.data !== content) present.data = content
      } else put(parent, present, document.createTextNode(content))
    } else if (present instanceof Element && isSame(present, content)) update(present, content)
    else {
      const element = SVG.has(content.tag)
        ? document.createElementNS("http://www.w3.org/2000/svg", content.tag)
        : document.createElement(content.tag)
      put(parent, present, element)
      update(element, content)
    }
  }
  while (parent.childNodes.length > wanted.length) parent.lastChild?.remove()
}

function flat(contents: readonly PageContent[]): (PageElement | string)[] {
  return contents.flatMap((content) => {
    if (content === false || content === undefined) return []
    if (typeof content === "object") return "tag" in content ? [content] : flat(content)
    return [String(content)]
  })
}

function put(parent: Element, present: ChildNode | undefined, node: Node): void {
  if (present === undefined) parent.append(node)
  else present.replaceWith(node)
}

function isSame(element: Element, { tag, attributes }: PageElement): boolean {
  return (
    element.localName === tag && (element.getAttribute("data-key") ?? "") === (attributes["data-key"] ?? "")
  )
}

function update(element: Element, { attributes, children, plot }: PageElement): void {
  for (const { name } of [...element.attributes]) {
    // The browser itself adds "open" to details that a reader opens.
    if (attributes[name] === undefined && name !== "open") element.removeAttribute(name)
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
  if (plot === undefined) {
    render(element, ...children)
    return
  }
  const redraw = redraws.get(element)
  if (redraw !== undefined) {
    redraw(plot.steps)
    return
  }
  const target = document.createElement("div")
  target.className = "plot"
  element.append(target)
  redraws.set(element, drawSteps(target, plot.label, stackedSeries(), plot.steps))
}
