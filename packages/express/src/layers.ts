import type { MountedLayer } from "@sluice/core/adapters"

/** An entry in the stack of a router: a route, or mounted middleware. */
export interface Layer {
  readonly route?: ExpressRoute | undefined
  readonly handle: Stacked
  /** The name of the entry's function. */
  readonly name?: string
  /** The path of the entry, in newer releases of Express 5. */
  readonly rawPath?: unknown
  /** The values of the path parameters in the latest match, in older releases. */
  readonly params?: object | undefined
  /** The path parameters themselves, in Express 4. Their values are soon overwritten by another request. */
  readonly keys?: readonly unknown[]
  /** The regular expression of the path, in Express 4. */
  readonly regexp?: { readonly source?: string }
}
/** A router, or any other function. */
interface Stacked {
  readonly stack?: readonly Layer[]
}
export interface ExpressRoute {
  readonly path?: unknown
  readonly stack?: readonly Layer[]
  /** An object whose keys are the route's methods in lower case. */
  readonly methods?: object
}
export interface App {
  readonly mountpath?: unknown
  readonly parent?: App | undefined
  readonly _router?: Stacked
  readonly router?: Stacked
}

/** A layer with the path of its enclosing routers. */
interface LayerPlace {
  readonly layer: Layer
  readonly mount: string
  /** Whether an enclosing router is mounted at a pattern. */
  readonly isBelowPattern: boolean
}

/** Returns the layers of an app and of its enclosing apps, in the order in which the layers run. */
export function layersOf(app: App | undefined): MountedLayer[] {
  const places = [...placesIn(app)].filter(({ layer }) => !isErrorHandler(layer.handle))
  return places.map(({ layer, mount }) => {
    const { handle, route } = layer
    const own = pathOf(layer)
    const isRouting = own !== "" || route !== undefined || handle.stack !== undefined || isApp(layer)
    const seen = { handle, path: mount + own, isRouting }
    if (typeof route?.path !== "string") return { ...seen, isLimited: isLimiter(layer) }
    const { path, stack = [], methods = {} } = route
    // For `app.all`, Express lists either every method or "_all".
    const names = "_all" in methods ? ["ALL"] : Object.keys(methods)
    return { ...seen, isLimited: stack.some(isLimiter), route: { methods: names, pattern: mount + path } }
  })
}

/** Iterates over the layers of an app and of its enclosing apps. A router comes before its own layers. */
export function placesIn(app: App | undefined): Generator<LayerPlace> {
  const apps: App[] = []
  for (let each = app; each !== undefined; each = each.parent) apps.unshift(each)
  return inside(stackOf(apps[0]), apps.slice(1), "", false, [])
}

/** Visits a router that contains itself only once. `apps` are the apps to enter, from the outermost app inwards. */
function* inside(
  stack: readonly Layer[] | undefined,
  apps: readonly App[],
  mount: string,
  isBelowPattern: boolean,
  around: readonly unknown[],
): Generator<LayerPlace> {
  if (stack === undefined || around.includes(stack)) return
  for (const layer of stack) {
    yield { layer, mount, isBelowPattern }
    const own = pathOf(layer)
    // An app does not refer to its mounted apps. Instead, its stack contains a function for each of them.
    const isEntered = isApp(layer) && own === literalOf(apps[0]?.mountpath)
    const next = isEntered ? stackOf(apps[0]) : layer.handle.stack
    const rest = isEntered ? apps.slice(1) : apps
    yield* inside(next, rest, mount + own, isBelowPattern || hasParameters(layer), [...around, stack])
  }
}

function stackOf(app: App | undefined): readonly Layer[] | undefined {
  // Read `_router` first, because Express 4 throws when `router` is read.
  return (app?._router ?? app?.router)?.stack
}

/**
 * Returns the path of a layer up to its first segment with a parameter, in lower case and without a trailing slash.
 * Therefore, "" stands for the root and for an unknown path. Express 4 stores only the regular expression of a path.
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

function hasParameters({ rawPath = "/", params = {}, keys = [] }: Layer): boolean {
  return isPattern(rawPath) || keys.length > 0 || Object.keys(params).length > 0
}

/** True if the path is a pattern, or a list that contains a pattern. */
export function isPattern(path: unknown): boolean {
  return [path].flat().some((each) => typeof each !== "string" || /[:*{(]/.test(each))
}

function isApp({ name }: Layer): boolean {
  return name === "mounted_app"
}

function isLimiter({ handle }: Layer): boolean {
  return "limiter" in handle
}

function isErrorHandler(handle: Stacked): boolean {
  return (handle as { readonly length?: number }).length === 4
}
