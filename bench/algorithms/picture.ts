import { LENGTH_MS, LIMIT, type Story, WINDOW_MS } from "./story.ts"

const WIDTH = 720
const HEIGHT = 190
const LEFT = 56
const RIGHT = 12
/** The upper edge of the chart. */
const TOP = 44
const BASE = 124
const ADMITTED_Y = 142
const REFUSED_Y = 160
const MOST_SHOWN = 20
const STEP_MS = 250

/** Colors for the light and the dark color scheme. */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #57606a }
  .title { font-weight: 600; fill: #24292f }
  .axis { stroke: #d0d7de } .limit { stroke: #cf222e; stroke-dasharray: 5 4 }
  .area { fill: #54aeff; fill-opacity: .35; stroke: #0969da }
  .in { fill: #0969da } .out { fill: none; stroke: #cf222e }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 } .title { fill: #f0f6fc }
    .axis { stroke: #3d444d } .limit, .out { stroke: #f85149 }
    .area { fill: #388bfd; stroke: #58a6ff } .in { fill: #58a6ff }
  }`

/** Returns a description of a picture's content. */
export function describe(name: string, { told, most }: Story): string {
  const admitted = told.filter(({ allowed }) => allowed)
  const held = admitted.filter(({ atMs, goesMs }) => goesMs > atMs).length
  const holding = held === 0 ? "" : ` (${held} of them held first)`
  return `${name}: ${admitted.length} of ${told.length} requests are admitted${holding}, at most ${most} in any minute.`
}

/**
 * Draws a story as an SVG picture. The upper part shows the requests that reached the service in the minute before
 * each instant, next to the limit. The lower part shows a filled dot for each admitted request and a hollow dot for
 * each refused request.
 */
export function draw(name: string, story: Story): string {
  const words = describe(name, story)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="title words">
<title id="title">${name}</title>
<desc id="words">${words}</desc>
<style>${STYLE}
</style>
<text class="title" x="${LEFT}" y="16">${name}</text>
<text x="${LEFT}" y="33">gone on in the last minute: at most ${story.most}, limit ${LIMIT}</text>
${minutes()}
<path class="area" d="${area(story)}"/>
<path class="limit" d="M${LEFT} ${yOf(LIMIT)}H${WIDTH - RIGHT}"/>
<text x="${LEFT - 6}" y="${yOf(LIMIT) + 4}" text-anchor="end">${LIMIT}</text>
<text x="${LEFT - 6}" y="${yOf(2 * LIMIT) + 4}" text-anchor="end">${2 * LIMIT}</text>
<text x="${LEFT - 6}" y="${ADMITTED_Y + 4}" text-anchor="end">goes on</text>
<text x="${LEFT - 6}" y="${REFUSED_Y + 4}" text-anchor="end">refused</text>
<g>${story.told
    .filter(({ goesMs }) => goesMs <= LENGTH_MS)
    .map(mark)
    .join("")}</g>
</svg>
`
}

function minutes(): string {
  const lines: string[] = [`<path class="axis" d="M${LEFT} ${BASE}H${WIDTH - RIGHT}"/>`]
  for (let atMs = 0; atMs <= LENGTH_MS; atMs += WINDOW_MS) {
    const x = xOf(atMs)
    const anchor = atMs === LENGTH_MS ? ' text-anchor="end"' : ' text-anchor="middle"'
    lines.push(`<path class="axis" d="M${x} ${TOP}V${REFUSED_Y + 8}"/>`)
    lines.push(`<text x="${x}" y="${HEIGHT - 6}"${anchor}>${atMs / 60_000}:00</text>`)
  }
  return lines.join("\n")
}

/** Returns a path that shows how many requests reached the service in the window that ends at each instant. */
function area({ told }: Story): string {
  const points: string[] = [`M${LEFT} ${BASE}`]
  let last = 0
  for (let atMs = 0; atMs <= LENGTH_MS; atMs += STEP_MS) {
    const count = told.filter(
      ({ allowed, goesMs }) => allowed && goesMs <= atMs && goesMs > atMs - WINDOW_MS,
    ).length
    if (count !== last) points.push(`H${xOf(atMs)}V${yOf(count)}`)
    last = count
  }
  return `${points.join("")}H${WIDTH - RIGHT}V${BASE}Z`
}

function mark({ allowed, goesMs, atMs }: Story["told"][number]): string {
  return allowed
    ? `<circle class="in" cx="${xOf(goesMs)}" cy="${ADMITTED_Y}" r="3"/>`
    : `<circle class="out" cx="${xOf(atMs)}" cy="${REFUSED_Y}" r="3"/>`
}

function xOf(atMs: number): number {
  return rounded(LEFT + (atMs / LENGTH_MS) * (WIDTH - LEFT - RIGHT))
}

function yOf(count: number): number {
  return rounded(BASE - (count / MOST_SHOWN) * (BASE - TOP))
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
