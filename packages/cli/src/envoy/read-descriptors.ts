import {
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Parser,
  parseAllDocuments,
  Scalar,
  visit,
  type YAMLMap,
} from "yaml"

/** A place in the file. */
export interface PlaceInFile {
  /** Line and column, both from 1. */
  readonly line: number
  readonly column: number
  /** The path of the member: `descriptors[0].rate_limit.unit`. */
  readonly path: string
}

/** A part of the file that has no counterpart in Sluice, or that Envoy itself rejects. */
export interface ImportProblem extends PlaceInFile {
  /** A description of the problem, and of how the part was converted. */
  readonly message: string
}

/** The limit of a descriptor. */
export interface EnvoyLimit {
  readonly place: PlaceInFile
  readonly requestsPerUnit: number
  readonly unit: EnvoyUnit
  readonly isUnlimited: boolean
  /** The name of the limit; "" if it has no name. */
  readonly name: string
}

/** A descriptor of the file, with its nested descriptors. */
export interface EnvoyDescriptor {
  readonly place: PlaceInFile
  readonly key: string
  /** The value; "" if the descriptor is for every value. */
  readonly value: string
  readonly limit: EnvoyLimit | undefined
  /** True for `shadow_mode` and `quota_mode`, in which Envoy never refuses. */
  readonly isShadow: boolean
  readonly descriptors: readonly EnvoyDescriptor[]
}

/** The content of a file. */
export interface EnvoyFile {
  /** The domain; "" if it is missing, which is a problem. */
  readonly domain: string
  readonly descriptors: readonly EnvoyDescriptor[]
  readonly problems: readonly ImportProblem[]
}

const UNITS = ["second", "minute", "hour", "day", "week", "month", "year"] as const
export type EnvoyUnit = (typeof UNITS)[number]

const MOST_UINT32 = 0xffff_ffff

/**
 * Reads a file of Envoy's rate limit service (https://github.com/envoyproxy/ratelimit#configuration). Reports members
 * that have no counterpart in Sluice. Omits invalid limits.
 */
export function readEnvoyFile(text: string): EnvoyFile {
  return new EnvoyReader(text).read()
}

type EnvoyMembers = ReadonlyMap<string, Node | null>

class EnvoyReader {
  readonly #problems: ImportProblem[] = []
  readonly #lines = new LineCounter()
  readonly #documents
  #read = 0

  constructor(text: string) {
    const deep = tooDeep(text)
    // Limit the depth, because composing values takes stack space for each level.
    this.#documents = deep === undefined ? parseAllDocuments(text, { lineCounter: this.#lines }) : []
    if (deep === undefined) return
    const before = text.slice(0, deep)
    const place = { line: before.split("\n").length, column: deep - before.lastIndexOf("\n"), path: "" }
    this.#report(place, `values are nested deeper than ${MOST_DEPTH} levels`)
  }

  read(): EnvoyFile {
    const [document, second] = this.#documents
    for (const { errors, warnings } of this.#documents) {
      // Reject warnings, too, because a warning means that a tag is unknown and the value would be misread.
      for (const { pos, message } of [...errors, ...warnings]) {
        this.#report(this.#placeAt(pos[0], ""), firstLine(message))
      }
    }
    this.#requireAnchors()
    if (this.#problems.length > 0) return this.#file("", [])
    if (second !== undefined) {
      this.#report(
        this.#placeAt(second.range[0], ""),
        "is left out: Envoy reads only the first document of a file",
      )
    }
    const root = this.#members(document?.contents ?? null, "", ["domain", "descriptors"])
    const domain = this.#text(root.get("domain"), "domain")
    if (domain === "")
      this.#report(this.#place(document?.contents, ""), "has no domain, which names the service")
    return this.#file(domain, this.#descriptors(root.get("descriptors"), "descriptors"))
  }

  /**
   * Reports each alias without an anchor. The value of such an alias is unknown, so ignoring it could remove a limit or
   * turn a value into a default.
   */
  #requireAnchors(): void {
    const [document] = this.#documents
    if (document === undefined) return
    visit(document, {
      Alias: (_key, alias) => {
        if (alias.resolve(document as Parameters<typeof alias.resolve>[0]) !== undefined) return
        this.#report(this.#place(alias, ""), `the alias *${alias.source} has no anchor before it`)
      },
    })
  }

  #file(domain: string, descriptors: readonly EnvoyDescriptor[]): EnvoyFile {
    return { domain, descriptors, problems: this.#problems }
  }

  #descriptors(node: Node | null | undefined, path: string): readonly EnvoyDescriptor[] {
    // Limit the depth, because an alias can refer to a list that contains it.
    if (path.split(".").length > MOST_LEVELS) {
      this.#report(this.#place(node, path), `is left out: it is nested deeper than ${MOST_LEVELS} levels`)
      return []
    }
    const keys = new Set<string>()
    return this.#items(node, path).flatMap((item, index) => {
      // Limit the number of descriptors, because lists of aliases can multiply them in each level.
      if (this.#read >= MOST_DESCRIPTORS) {
        if (this.#read === MOST_DESCRIPTORS) this.#report(this.#place(item, path), TOO_MANY)
        this.#read++
        return []
      }
      const descriptor = this.#descriptor(item, `${path}[${index}]`)
      const { key, value, place } = descriptor
      if (key === "") this.#report(place, "has no key, so it is left out")
      const composite = value === "" ? key : `${key}_${value}`
      const isTwice = keys.has(composite)
      if (isTwice)
        this.#report(place, `is left out: Envoy rejects a second ${quoted(composite)} at this place`)
      keys.add(composite)
      return key === "" || isTwice ? [] : [descriptor]
    })
  }

  #descriptor(node: Node | null, path: string): EnvoyDescriptor {
    this.#read++
    const members = this.#members(node, path, DESCRIPTOR)
    const flag = (name: string): boolean => this.#flag(members.get(name), `${path}.${name}`)
    for (const name of ["detailed_metric", "value_to_metric"]) {
      if (flag(name)) this.#report(this.#place(members.get(name), `${path}.${name}`), METRICS_ONLY)
    }
    if (members.has("metadata")) {
      this.#report(
        this.#place(members.get("metadata"), `${path}.metadata`),
        "is left out: it only adds to Envoy's response",
      )
    }
    const isQuota = flag("quota_mode")
    if (isQuota) {
      this.#report(this.#place(members.get("quota_mode"), `${path}.quota_mode`), QUOTA_MODE)
    }
    if (flag("share_threshold") && !this.#text(members.get("value"), `${path}.value`).includes("*")) {
      const place = this.#place(members.get("share_threshold"), `${path}.share_threshold`)
      this.#report(place, "is left out: Envoy accepts it only with a value that contains *")
    }
    return {
      place: this.#place(node, path),
      key: this.#text(members.get("key"), `${path}.key`),
      value: this.#text(members.get("value"), `${path}.value`),
      limit: this.#limit(members.get("rate_limit"), `${path}.rate_limit`),
      isShadow: flag("shadow_mode") || isQuota,
      descriptors: this.#descriptors(members.get("descriptors"), `${path}.descriptors`),
    }
  }

  #limit(node: Node | null | undefined, path: string): EnvoyLimit | undefined {
    if (isNothing(node)) return undefined
    const before = this.#problems.length
    const members = this.#members(node ?? null, path, LIMIT)
    const requests = members.get("requests_per_unit")
    const isUnlimited = this.#flag(members.get("unlimited"), `${path}.unlimited`)
    const unit = this.#unit(members.get("unit") ?? node, members.get("unit"), `${path}.unit`, isUnlimited)
    const requestsPerUnit = this.#requests(requests, `${path}.requests_per_unit`)
    // Omit the whole limit if one of these members is invalid, because a default would change the limit.
    const isBroken = this.#problems.length > before
    if (!isNothing(members.get("replaces"))) {
      const place = this.#place(members.get("replaces"), `${path}.replaces`)
      this.#report(place, "is ignored: in Sluice, a limit replaces no other, so both limits apply")
    }
    const name = this.#text(members.get("name"), `${path}.name`)
    if (isBroken) this.#report(this.#place(node, path), "is left out, because it is not valid")
    return isBroken ? undefined : { place: this.#place(node, path), requestsPerUnit, unit, isUnlimited, name }
  }

  #unit(
    at: Node | null | undefined,
    node: Node | null | undefined,
    path: string,
    isUnlimited: boolean,
  ): EnvoyUnit {
    const text = this.#text(node, path)
    const unit = UNITS.find((each) => each === text.toLowerCase())
    if (unit === undefined && !(isUnlimited && text === "")) {
      this.#report(this.#place(at, path), `${quoted(text)} is not a unit: expected ${UNITS.join(", ")}`)
    }
    return unit ?? "second"
  }

  #requests(node: Node | null | undefined, path: string): number {
    // Envoy reads an absent number as 0.
    if (isNothing(node)) return 0
    const value = numberOf(node)
    if (Number.isInteger(value) && value >= 0 && value <= MOST_UINT32) return value
    this.#report(this.#place(node, path), `is not a number of requests: expected 0 to ${MOST_UINT32}`)
    return 0
  }

  #flag(node: Node | null | undefined, path: string): boolean {
    if (isNothing(node)) return false
    const word = isScalar(node) && node.type === Scalar.PLAIN ? (node.source ?? "") : ""
    const isTrue = TRUE.test(word)
    if (isTrue || FALSE.test(word)) return isTrue
    this.#report(this.#place(node, path), "is not true or false, so it counts as false")
    return false
  }

  /** Returns a scalar as written: Envoy reads the value 010 as the text "010". */
  #text(node: Node | null | undefined, path: string): string {
    if (isNothing(node)) return ""
    if (isScalar(node)) return node.source ?? String(node.value)
    this.#report(this.#place(node, path), "is not a string, so it is left out")
    return ""
  }

  #items(node: Node | null | undefined, path: string): readonly (Node | null)[] {
    if (isNothing(node)) return []
    if (isSeq<Node | null>(node)) return node.items.map((item) => this.#resolved(item))
    this.#report(this.#place(node, path), "is not a list of descriptors, so it is left out")
    return []
  }

  /** Returns the members of a map, and reports unknown members. */
  #members(node: Node | null, path: string, known: readonly string[]): EnvoyMembers {
    const members = new Map<string, Node | null>()
    if (!isMap(node)) {
      if (!isNothing(node)) this.#report(this.#place(node, path), "is not a map, so it is left out")
      return members
    }
    for (const { key, value } of (node as YAMLMap<Node, Node | null>).items) {
      const name = isScalar(key) ? String(key.value) : ""
      if (known.includes(name)) members.set(name, this.#resolved(value))
      else {
        const place = this.#place(key, path === "" ? name : `${path}.${name}`)
        this.#report(place, `is left out: expected ${known.join(", ")}`)
      }
    }
    return members
  }

  #resolved(node: Node | null): Node | null {
    if (!isAlias(node)) return node
    return node.resolve(this.#documents[0] as Parameters<typeof node.resolve>[0]) ?? null
  }

  #report(place: PlaceInFile, message: string): void {
    this.#problems.push({ ...place, message })
  }

  #place(node: Node | null | undefined, path: string): PlaceInFile {
    return this.#placeAt(node?.range?.[0] ?? 0, path)
  }

  #placeAt(offset: number, path: string): PlaceInFile {
    const { line, col } = this.#lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1), path }
  }
}

/** Maximum nesting depth of descriptors. 16 is enough, because requests contain few entries. */
const MOST_LEVELS = 16
/** Maximum nesting depth of lists and maps. Each level of descriptors is a list of maps. */
const MOST_DEPTH = 3 * MOST_LEVELS
/** Maximum number of descriptors in a file, including those that aliases repeat. */
const MOST_DESCRIPTORS = 100_000
const TOO_MANY = `is left out, with all after it: a file may have ${MOST_DESCRIPTORS} descriptors, with those of aliases`

/** Returns the offset of the first value that is nested too deeply. */
function tooDeep(text: string): number | undefined {
  const open: { readonly token: CST.Token; readonly depth: number }[] = []
  for (const token of new Parser().parse(text)) open.push({ token, depth: 0 })
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next
    if (token.type === "document" && token.value !== undefined) open.push({ token: token.value, depth })
    if (!("items" in token)) continue
    if (depth >= MOST_DEPTH) return token.offset
    for (const { key, value } of token.items) {
      for (const inner of [key, value]) if (inner != null) open.push({ token: inner, depth: depth + 1 })
    }
  }
  return undefined
}

const DESCRIPTOR = [
  ...["key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode"],
  ...["detailed_metric", "value_to_metric", "share_threshold", "metadata"],
]
const LIMIT = ["unit", "requests_per_unit", "unlimited", "name", "replaces"]

const METRICS_ONLY = "is left out: it only changes the names of Envoy's metrics"
const QUOTA_MODE =
  "is imported as shadow, which never refuses: the response names the rule in shadowed instead of quotas"

/** The booleans of YAML 1.1. */
const TRUE = /^(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE)$/
const FALSE = /^(?:n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$/

/**
 * Returns a number as YAML 1.1 reads it, because Envoy does so: 010 is 8, and 1_000 is 1000. Returns NaN for any other
 * value.
 */
function numberOf(node: Node | null | undefined): number {
  if (!isScalar(node) || node.type !== Scalar.PLAIN) return Number.NaN
  const digits = (node.source ?? "").replaceAll("_", "").replace(/^\+/, "")
  return Number(/^0[0-7]+$/.test(digits) ? `0o${digits}` : digits)
}

/** True if the value is absent or empty, which has the same meaning. */
function isNothing(node: Node | null | undefined): boolean {
  return node === undefined || node === null || (isScalar(node) && node.value === null)
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] as string
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
