import type { LatePlace } from "@sluice/core"
import type { App, Layer, Stacked } from "./route.ts"

/** The position of a layer in the stack of a router. */
interface Position {
  readonly stack: readonly Layer[]
  readonly index: number
}

/** A layer with the path of the router that contains it. */
interface Mounted {
  readonly layer: Layer
  readonly mount: string
}

/**
 * Returns the place of a limiter that is after all routes of its path. Undefined if that is not certain, or if other
 * limiters are before it.
 */
export function latePlace(app: App | undefined, middleware: object): LatePlace | undefined {
  const positions = positionsOf(app, ({ handle }) => handle === middleware)
  if (positions === undefined) return undefined
  const path = positions.map(({ stack, index }) => pathOf(stack[index] as Layer)).join("")
  const before: Mounted[] = []
  let mount = ""
  let hasHandlers = false
  for (const { stack, index } of positions) {
    for (const layer of stack.slice(index + 1)) {
      const own = pathOf(layer)
      if (isErrorHandler(layer.handle) || !areRelated(mount + own, path)) continue
      if (own !== "" || isRouting(layer)) return undefined
      hasHandlers = true
    }
    before.push(...mountedIn(stack.slice(0, index), mount))
    mount += pathOf(stack[index] as Layer)
  }
  const isBesides = ({ layer, mount }: Mounted): boolean =>
    "limiter" in layer.handle && areRelated(mount + pathOf(layer), path)
  if (before.some(isBesides)) return undefined
  const first = before.find(
    ({ layer, mount }) => isUnlimitedRoute(layer) && isBelow(mount + pathOf(layer), path),
  )
  if (first === undefined) return undefined
  const { path: pattern, methods = {} } = first.layer.route as NonNullable<Layer["route"]>
  const names = Object.keys(methods)
  // For `app.all`, Express has every method or "_all".
  const method = names.length > 3 || names[0] === "_all" ? "ALL" : names.join(",").toUpperCase()
  const others = path === "" ? "" : ` below ${path}`
  return { routes: `${method} ${first.mount}${pattern} and every other route${others}`, hasHandlers }
}

/** Returns where a layer is: in each router around it, from the outermost app inwards. */
function positionsOf(app: App | undefined, isIt: (layer: Layer) => boolean): readonly Position[] | undefined {
  const inner = search((app?._router ?? app?.router)?.stack, isIt, new Set())
  if (inner === undefined || app?.parent === undefined) return inner
  // An app does not refer to the apps inside it. It has a function for each of them.
  const path = literalOf(app.mountpath)
  const around = positionsOf(app.parent, (layer) => isApp(layer) && pathOf(layer) === path)
  return around && [...around, ...inner]
}

function search(
  stack: readonly Layer[] | undefined,
  isIt: (layer: Layer) => boolean,
  seen: Set<unknown>,
): readonly Position[] | undefined {
  if (stack === undefined || seen.has(stack)) return undefined
  seen.add(stack)
  for (const [index, layer] of stack.entries()) {
    if (isIt(layer)) return [{ stack, index }]
    const inside = search(layer.handle.stack, isIt, seen)
    if (inside !== undefined) return [{ stack, index }, ...inside]
  }
  return undefined
}

/** Returns the layers and those of the routers among them. Visits a router that contains itself only once. */
function mountedIn(layers: readonly Layer[], mount: string, seen = new Set<unknown>()): readonly Mounted[] {
  return layers.flatMap((layer) => {
    const { stack } = layer.handle
    if (stack === undefined || seen.has(stack)) return [{ layer, mount }]
    seen.add(stack)
    return [{ layer, mount }, ...mountedIn(stack, mount + pathOf(layer), seen)]
  })
}

/**
 * Returns the path of a layer up to its first segment with a parameter, in lower case and without a slash at its end. So
 * "" stands for the root, and for a path that is not known. Express 4 keeps only the expression of a path.
 */
function pathOf({ route, rawPath, regexp }: Layer): string {
  if (route !== undefined) return literalOf(route.path)
  if (regexp === undefined) return literalOf(rawPath)
  return literalOf(regexp.source?.replace(/^\^/, "").replace(/(\\\/)?\?\(\?=\\\/\|\$\)$/, ""))
}

function literalOf(pattern: unknown): string {
  if (typeof pattern !== "string") return ""
  const [literal = ""] = /^(?:[^\\^$*+?()[\]{}|:]|\\.)*/.exec(pattern) ?? []
  const whole = literal === pattern ? literal : literal.slice(0, literal.lastIndexOf("/"))
  return whole.replace(/\\(.)/g, "$1").replace(/\/+$/, "").toLowerCase()
}

/** True if the paths are the same, or the first one is below the second one. */
function isBelow(path: string, above: string): boolean {
  return `${path}/`.startsWith(`${above}/`)
}

/** True if a request may have both paths. */
function areRelated(path: string, other: string): boolean {
  return isBelow(path, other) || isBelow(other, path)
}

function isUnlimitedRoute({ route }: Layer): boolean {
  return typeof route?.path === "string" && route.stack?.some(({ handle }) => "limiter" in handle) !== true
}

/** True for a layer that may have routes. */
function isRouting(layer: Layer): boolean {
  return layer.route !== undefined || layer.handle.stack !== undefined || isApp(layer)
}

function isApp({ name }: Layer): boolean {
  return name === "mounted_app"
}

function isErrorHandler(handle: Stacked): boolean {
  return (handle as unknown as { readonly length: number }).length === 4
}
