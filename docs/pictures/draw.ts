/** The meaning of a color: part of Sluice, not part of Sluice, admitted, refused, or a goal. */
export type Look = "ours" | "others" | "good" | "refused" | "goal"

/** A rectangle in pixels. */
export interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A place in the picture, as x and y in pixels. */
export type Point = readonly [x: number, y: number]

/** The content of a picture in words, and its height. */
export interface Frame {
  readonly title: string
  /** Replaces the picture for readers who cannot see it. */
  readonly description: string
  readonly height: number
}

/** Width of every picture. It fits into the column of a code host without scaling. */
export const WIDTH = 720
/** The distance between the lines of a text. */
export const LINE_HEIGHT = 18
/** The distance between a baseline and the middle of its letters. */
const HALF_LETTER = 5
const CORNER_RADIUS = 6
/** Length of the head of an arrow, whose line ends where the head begins. */
export const HEAD_LENGTH = 8

/** The color of each element, in light and in dark. */
export type Style = Readonly<Record<string, readonly [light: string, dark: string]>>

const PALETTE: Style = {
  "svg > rect": ["fill:#ffffff", "fill:#0d1117"],
  text: ["fill:#59636e", "fill:#9198a1"],
  "text.strong": ["fill:#1f2328", "fill:#f0f6fc"],
  ".lane > rect": ["fill:#f6f8fa", "fill:#151b23"],
  ".box > rect": ["fill:#ffffff", "fill:#0d1117"],
  ...lines("ours", "#0969da", "#4493f8"),
  ...lines("others", "#818b98", "#7d8590"),
  ...lines("good", "#1a7f37", "#3fb950"),
  ...lines("refused", "#cf222e", "#f85149"),
  ...lines("goal", "#9a6700", "#d29922"),
  ".box.ours > rect": ["fill:#ddf4ff", "fill:#121d2f"],
  ".grid": ["stroke:#d1d9e0", "stroke:#3d444d"],
  ".dot.hollow": ["fill:#ffffff", "fill:#0d1117"],
}

function lines(look: Look, light: string, dark: string): Style {
  return {
    [`.${look} > rect, .line.${look}, .curve.${look}, .dot.${look}`]: [`stroke:${light}`, `stroke:${dark}`],
    [`.head.${look}, .dot.${look}`]: [`fill:${light}`, `fill:${dark}`],
    // Gray is strong enough for a line, but too weak for letters.
    ...(look !== "others" && { [`text.${look}`]: [`fill:${light}`, `fill:${dark}`] }),
  }
}

/** Draws a picture of parts, in which later parts cover earlier ones. `style` has the colors of additional elements. */
export function picture(
  { title, description, height }: Frame,
  parts: readonly string[],
  style: Style = {},
): string {
  const colors = (scheme: 0 | 1): string =>
    Object.entries({ ...PALETTE, ...style })
      .map(([selector, schemes]) => `${selector}{${schemes[scheme]}}`)
      .join("\n")
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">${escapeText(title)}</title>
<desc id="description">${escapeText(description)}</desc>
<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Helvetica,Arial,sans-serif}
text.strong{font-weight:600}
.line,.curve{fill:none;stroke-width:1.5}
.dashed{stroke-dasharray:5 4}
${colors(0)}
@media (prefers-color-scheme:dark){
${colors(1)}
}
</style>
<rect width="${WIDTH}" height="${height}"/>
${parts.join("\n")}
</svg>
`
}

/** Draws a box with a title and lines of text in its middle. Parts are drawn in the box, below these. */
export function box(
  area: Area,
  look: Look,
  title: readonly string[],
  more: readonly string[],
  { parts = [], partsHeight = 0 }: { readonly parts?: readonly string[]; readonly partsHeight?: number } = {},
): string {
  const x = area.x + area.width / 2
  const middle = area.y + (area.height - partsHeight) / 2
  const words = [...title, ...more]
  const first = middle - ((words.length - 1) * LINE_HEIGHT) / 2 + HALF_LETTER
  const drawn = words.map((line, row) =>
    text([x, first + row * LINE_HEIGHT], line, { isStrong: row < title.length }),
  )
  return group(`box ${look}`, area, [...drawn, ...parts])
}

/** Draws an area for boxes that belong together, with its name in the upper left corner. */
export function lane(area: Area, name: string): string {
  const at: Point = [area.x + 12, area.y + 21]
  return group("lane", area, [text(at, name, { anchor: "start" })])
}

/** Draws an arrow through points, with round corners, to the last point. */
export function arrow(points: readonly Point[], look: Look, { isDashed = false } = {}): string {
  const [before = [0, 0], tip = [0, 0]] = points.slice(-2) as Point[]
  const neck = towards(tip, before, HEAD_LENGTH)
  const line = points.slice(1, -1).map((corner, i) => {
    const radius = (other: Point): number => Math.min(CORNER_RADIUS, distance(corner, other) / 2)
    const [from, to] = [points[i] as Point, points[i + 2] as Point]
    const size = Math.min(radius(from), radius(to))
    return `L${towards(corner, from, size)}Q${corner} ${towards(corner, to, size)}`
  })
  const [dx, dy] = [(tip[0] - neck[0]) / 2, (tip[1] - neck[1]) / 2]
  const head = [tip, [neck[0] - dy, neck[1] + dx], [neck[0] + dy, neck[1] - dx]]
  return `<path class="line ${look}${isDashed ? " dashed" : ""}" d="M${points[0]}${line.join("")}L${neck}"/><path class="head ${look}" d="M${head.join("L")}Z"/>`
}

/** Draws a line of a chart through points. */
export function curve(points: readonly Point[], look: Look, { isDashed = false } = {}): string {
  return `<path class="curve ${look}${isDashed ? " dashed" : ""}" d="M${points.join("L")}"/>`
}

/** Draws a thin gray line between two points, behind a chart. */
export function gridLine([x1, y1]: Point, [x2, y2]: Point): string {
  return `<line class="grid" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`
}

/** Draws an event of a chart: a dot, or a ring if it is hollow. */
export function dot([x, y]: Point, look: Look, { isHollow = false } = {}): string {
  return `<circle class="dot ${look}${isHollow ? " hollow" : ""}" cx="${x}" cy="${y}" r="3"/>`
}

/** Draws one line of text. The point is on its baseline: in the middle, or where `anchor` says. */
export function text(
  [x, y]: Point,
  words: string,
  {
    anchor = "middle",
    isStrong = false,
    look,
  }: {
    readonly anchor?: "start" | "middle" | "end"
    readonly isStrong?: boolean
    readonly look?: Look
  } = {},
): string {
  const names = [...(isStrong ? ["strong"] : []), ...(look === undefined ? [] : [look])].join(" ")
  return `<text${names && ` class="${names}"`} x="${x}" y="${y}" text-anchor="${anchor}">${escapeText(words)}</text>`
}

function group(names: string, { x, y, width, height }: Area, parts: readonly string[]): string {
  return `<g class="${names}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>${parts.join("")}</g>`
}

function distance([x1, y1]: Point, [x2, y2]: Point): number {
  return Math.hypot(x2 - x1, y2 - y1)
}

/** Returns the point at a distance from one point, in the direction of another. */
function towards(from: Point, to: Point, size: number): Point {
  const share = size / distance(from, to)
  const along = (a: number, b: number): number => Math.round((a + (b - a) * share) * 10) / 10
  return [along(from[0], to[0]), along(from[1], to[1])]
}

/** Returns words as text of an SVG file. */
export function escapeText(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
}
