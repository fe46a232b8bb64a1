import { type Point, WIDTH } from "./draw.ts"

/** A box in a row of boxes. */
export interface Box {
  readonly name: string
  /** The names of boxes in lower rows to which arrows lead. */
  readonly imports: readonly string[]
  /** The number of the row, from 0 at the top. */
  readonly row: number
  /** The x of its middle. */
  readonly middle: number
}

/** A row of boxes. */
export interface Row {
  readonly boxes: readonly Box[]
  readonly height: number
}

/** The way of an arrow, from the bottom of one box to the top of another. */
export interface Route {
  readonly from: string
  readonly to: string
  readonly points: readonly Point[]
}

/** Width of every box. */
export const BOX_WIDTH = 150
/** The smallest distance between parallel lines. */
const SPACING = 9
/** The distance between the middle of a box and the middle of the gap beside it. */
const BESIDE = 90
/** The places for vertical lines. The middles of boxes and of gaps are on this grid, too. */
const GRID = Array.from({ length: 79 }, (_, i) => WIDTH / 2 + (i - 39) * SPACING)
/** The distance between a row and the horizontal lines below it. */
const ABOVE_LINES = 14
/** The distance between these lines and the next row, with room for the head of an arrow. */
const BELOW_LINES = 22

/** All arrows to one box. They join on their way, like tracks of a railway. The largest tree chooses its way first. */
interface Tree {
  readonly target: Box
  readonly sources: readonly Box[]
  /** The x at which the line of each source begins. */
  readonly starts: Map<Box, number>
  /** The x at which the tree leaves the channel below each row: through the next row, or to its target. */
  readonly exits: Map<number, number>
}

/**
 * Places rows below each other, and leads the arrows between their boxes. The space between two rows is called a
 * channel. In it, all arrows to one box share one horizontal line. Returns the top of each row, and the arrows.
 * @throws Error if there are more arrows than fit between the boxes
 */
export function leadArrows(
  rows: readonly Row[],
  top: number,
): { readonly tops: readonly number[]; readonly routes: readonly Route[] } {
  const trees = treesOf(rows.flatMap(({ boxes }) => boxes))
  chooseVerticals(rows, trees)
  const channels = rows.map((_, row) => horizontalsOf(row, trees))
  const tops = [top]
  const bottomOf = (row: number): number => (tops[row] ?? 0) + (rows[row]?.height ?? 0)
  channels.forEach((lines, row) => {
    tops.push(bottomOf(row) + ABOVE_LINES + Math.max(0, lines.length - 1) * SPACING + BELOW_LINES)
  })
  const routes = trees.flatMap((tree) =>
    tree.sources.map((source) => {
      let x = tree.starts.get(source) ?? 0
      const points: Point[] = [[x, bottomOf(source.row)]]
      for (let row = source.row; row < tree.target.row; row++) {
        const y = bottomOf(row) + ABOVE_LINES + (channels[row]?.indexOf(tree) ?? 0) * SPACING
        const exit = tree.exits.get(row) ?? 0
        if (exit !== x) points.push([x, y], [exit, y])
        x = exit
      }
      points.push([x, tops[tree.target.row] ?? 0])
      return { from: source.name, to: tree.target.name, points }
    }),
  )
  return { tops: tops.slice(0, -1), routes }
}

function treesOf(boxes: readonly Box[]): Tree[] {
  return boxes
    .map((target) => ({
      target,
      sources: boxes.filter(({ imports }) => imports.includes(target.name)),
      starts: new Map(),
      exits: new Map([[target.row - 1, target.middle]]),
    }))
    .filter(({ sources }) => sources.length > 0)
    .toSorted((a, b) => b.sources.length - a.sources.length)
}

/** Chooses the x of each vertical line, so that lines of different trees keep their distance. */
function chooseVerticals(rows: readonly Row[], trees: readonly Tree[]): void {
  const taken = rows.map((): { x: number; tree: Tree }[] => [])
  for (const tree of trees) taken[tree.target.row - 1]?.push({ x: tree.target.middle, tree })

  /** Takes the free x of the lowest cost in the channels below some rows. */
  const take = (
    tree: Tree,
    below: readonly number[],
    places: readonly number[],
    costOf: (x: number) => number,
  ): number => {
    const others = below.flatMap((row) => taken[row] ?? [])
    const isFree = (x: number): boolean =>
      others.every((other) => Math.abs(other.x - x) >= SPACING || (other.tree === tree && other.x === x))
    const [x] = places.filter(isFree).toSorted((a, b) => costOf(a) - costOf(b))
    if (x === undefined) throw new Error(`There is no room for the arrows to ${tree.target.name}.`)
    for (const row of below) taken[row]?.push({ x, tree })
    return x
  }

  for (const tree of trees) {
    const first = Math.min(...tree.sources.map(({ row }) => row))
    const mean = tree.sources.reduce((sum, { middle }) => sum + middle, 0) / tree.sources.length
    // From the target up, so that the line becomes straight where it can.
    for (let row = tree.target.row - 1; row > first; row--) {
      const below = tree.exits.get(row) ?? 0
      // Of two gaps at the same distance, take the one on the side of the sources.
      const wanted = below + Math.sign(mean - below)
      const boxes = rows[row]?.boxes ?? []
      const isMiddle = (x: number): boolean => boxes.some(({ middle }) => Math.abs(middle - x) === BESIDE)
      const costOf = (x: number): number =>
        x === below ? 0 : Math.abs(x - wanted) + (isMiddle(x) ? 0 : SPACING + 2)
      tree.exits.set(row - 1, take(tree, [row - 1, row], gapsOf(boxes), costOf))
    }
  }
  for (const source of rows.flatMap(({ boxes }) => boxes)) {
    const exitOf = (tree: Tree): number => tree.exits.get(source.row) ?? 0
    const own = trees
      .filter(({ sources }) => sources.includes(source))
      .toSorted((a, b) => exitOf(a) - exitOf(b))
    own.forEach((tree, i) => {
      // Steps of two spacings, because a line that is only a little beside the middle looks like a mistake.
      const first = source.middle + (own.length % 2 === 0 ? SPACING : 0)
      const wanted = source.middle + (i - (own.length - 1) / 2) * 2 * SPACING
      const places = [-3, -2, -1, 0, 1, 2, 3].map((step) => first + step * 2 * SPACING)
      const exit = exitOf(tree)
      if (Math.abs(exit - source.middle) < BOX_WIDTH / 2 - SPACING) places.push(exit)
      const costOf = (x: number): number => Math.abs(x - wanted) - (x === exit ? 2 * SPACING : 0)
      tree.starts.set(source, take(tree, [source.row], places, costOf))
    })
  }
}

/** Returns the places for lines through a row: beside its boxes, and outside of them. */
function gapsOf(boxes: readonly Box[]): number[] {
  return GRID.filter((x) => boxes.every(({ middle }) => Math.abs(middle - x) > BOX_WIDTH / 2))
}

/** Returns the trees that need a horizontal line below a row, from the top, in an order with few crossings. */
function horizontalsOf(row: number, trees: readonly Tree[]): Tree[] {
  const entriesOf = ({ sources, starts, exits }: Tree): number[] => [
    ...sources.filter((source) => source.row === row).map((source) => starts.get(source) ?? 0),
    ...(exits.has(row - 1) ? [exits.get(row - 1) ?? 0] : []),
  ]
  const exitOf = (tree: Tree): number => tree.exits.get(row) ?? 0
  const isInside = (x: number, tree: Tree): boolean => {
    const all = [...entriesOf(tree), exitOf(tree)]
    return x > Math.min(...all) && x < Math.max(...all)
  }
  const crossings = (upper: Tree, lower: Tree): number =>
    entriesOf(lower).filter((x) => isInside(x, upper)).length + Number(isInside(exitOf(upper), lower))
  const allCrossings = (order: readonly Tree[]): number =>
    order
      .flatMap((upper, i) => order.slice(i + 1).map((lower) => crossings(upper, lower)))
      .reduce((sum, count) => sum + count, 0)
  return trees
    .filter((tree) => tree.exits.has(row) && entriesOf(tree).some((x) => x !== exitOf(tree)))
    .reduce<Tree[]>((order, tree) => {
      const orders = Array.from({ length: order.length + 1 }, (_, i) => order.toSpliced(i, 0, tree))
      return orders.reduce((best, next) => (allCrossings(next) < allCrossings(best) ? next : best))
    }, [])
}
