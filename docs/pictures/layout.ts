import { type Area, LINE_HEIGHT, type Point, WIDTH } from "./draw.ts"
import { layersOf, withoutImplied } from "./layers.ts"
import type { PackageEntry } from "./packages.ts"
import { BOX_WIDTH, leadArrows, type Route, type Row } from "./routes.ts"

/** The boxes and arrows of packages. */
export interface Layout {
  readonly boxes: readonly {
    readonly area: Area
    readonly name: readonly string[]
    readonly job: readonly string[]
  }[]
  readonly arrows: readonly Route[]
  /** The y below the lowest box. */
  readonly bottom: number
}

const TOP = 16
const COLUMNS = 4
/** The distance between the left edges of neighbors. The gap between them has room for three lines. */
const PITCH = 180
/** The characters that fit into a box in the widest of the fonts, in bold and in regular letters. */
const NAME_LENGTH = 15
const JOB_LENGTH = 19
/** The room above and below the words of a box, together. */
const PADDING = 16
/** The pixels by which an arrow may become longer to avoid a crossing. */
const CROSSING_COST = 80

/**
 * Places packages in rows by their layers, the lowest layer at the bottom, and draws an arrow for each import that no
 * other import implies. A layer of more than four packages has several rows. Within a layer, packages change places as
 * long as this makes arrows shorter or removes crossings.
 */
export function layOut(packages: readonly PackageEntry[]): Layout {
  const layers = layersOf(withoutImplied(packages)).toReversed()
  const places = layers.flatMap((layer, number) => layer.map(() => number))
  let order = layers.flat()
  let best = layOutInOrder(places, order)
  for (let isBetter = true; isBetter; ) {
    isBetter = false
    for (let i = 0; i < order.length; i++) {
      for (let j = i + 1; places[j] === places[i]; j++) {
        const next = order.with(i, order[j] as PackageEntry).with(j, order[i] as PackageEntry)
        const layout = layOutInOrder(places, next)
        if (layout.cost >= best.cost) continue
        order = next
        best = layout
        isBetter = true
      }
    }
  }
  return best
}

function layOutInOrder(
  layers: readonly number[],
  packages: readonly PackageEntry[],
): Layout & { readonly cost: number } {
  const words = new Map(packages.map((entry) => [entry.name, wordsOf(entry)]))
  const rows = rowsOf(layers, packages).map((entries, row): Row => {
    const lines = entries
      .map(({ name }) => words.get(name))
      .map((each) => (each?.name.length ?? 0) + (each?.job.length ?? 0))
    return {
      height: Math.max(...lines) * LINE_HEIGHT + PADDING,
      boxes: entries.map(({ name, imports }, i) => ({
        name,
        imports,
        row,
        middle: WIDTH / 2 + (i - (entries.length - 1) / 2) * PITCH,
      })),
    }
  })
  const { tops, routes } = leadArrows(rows, TOP)
  const boxes = rows.flatMap(({ height, boxes }) =>
    boxes.map(({ name, row, middle }) => ({
      area: { x: middle - BOX_WIDTH / 2, y: tops[row] ?? 0, width: BOX_WIDTH, height },
      name: words.get(name)?.name ?? [],
      job: words.get(name)?.job ?? [],
    })),
  )
  const bottom = (tops.at(-1) ?? 0) + (rows.at(-1)?.height ?? 0)
  return { boxes, arrows: routes, bottom, cost: costOf(routes) }
}

function rowsOf(layers: readonly number[], packages: readonly PackageEntry[]): PackageEntry[][] {
  return [...new Set(layers)].flatMap((number) => {
    const layer = packages.filter((_, i) => layers[i] === number)
    const size = Math.ceil(layer.length / Math.ceil(layer.length / COLUMNS))
    return Array.from({ length: Math.ceil(layer.length / size) }, (_, i) =>
      layer.slice(i * size, (i + 1) * size),
    )
  })
}

/** Returns the length of all arrows in pixels, and more for each crossing. */
function costOf(routes: readonly Route[]): number {
  const segments = routes.flatMap(({ to, points }) =>
    points.slice(1).map((end, i) => ({ to, start: points[i] as Point, end })),
  )
  const lengths = segments.map(({ start, end }) => Math.abs(end[0] - start[0]) + Math.abs(end[1] - start[1]))
  const flat = segments.filter(({ start, end }) => start[1] === end[1])
  const steep = segments.filter(({ start, end }) => start[0] === end[0])
  const isBetween = (value: number, a: number, b: number): boolean => (value - a) * (value - b) < 0
  const crossings = flat.flatMap((one) =>
    steep.filter(
      (other) =>
        other.to !== one.to &&
        isBetween(other.start[0], one.start[0], one.end[0]) &&
        isBetween(one.start[1], other.start[1], other.end[1]),
    ),
  )
  return lengths.reduce((sum, length) => sum + length, 0) + CROSSING_COST * crossings.length
}

function wordsOf({ name, job }: PackageEntry): {
  readonly name: readonly string[]
  readonly job: readonly string[]
} {
  return { name: wrap(name.split(/(?<=-)/), NAME_LENGTH), job: wrap(job.split(/(?<= )/), JOB_LENGTH) }
}

/** Joins words to as few lines as possible. */
function wrap(pieces: readonly string[], length: number): string[] {
  const rows: string[] = []
  for (const piece of pieces) {
    const joined = (rows.at(-1) ?? "") + piece
    if (rows.length > 0 && joined.trimEnd().length <= length) rows[rows.length - 1] = joined
    else rows.push(piece)
  }
  return rows.map((row) => row.trimEnd())
}
