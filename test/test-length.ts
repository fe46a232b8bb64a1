/** True with `TESTS=long`, which `pnpm test:long` sets. Each test then tries as many examples as it can. */
export const isLongRun: boolean = process.env.TESTS === "long"

/**
 * Returns the number of examples that a test tries: `everyTime` in `pnpm test`, and `long` in `pnpm test:long`. An
 * extensive test tries few examples on each change, and all examples before a release.
 */
export function examples(everyTime: number, long: number): number {
  return isLongRun ? long : everyTime
}

/**
 * Returns the cells of a matrix that a test tries. `pnpm test` tries some cells, which include each row and each
 * column, and `pnpm test:long` tries all cells.
 */
export function pairs<Row, Column>(
  rows: readonly Row[],
  columns: readonly Column[],
): readonly (readonly [Row, Column])[] {
  const most = Math.max(rows.length, columns.length)
  const all = rows.flatMap((row) => columns.map((column) => [row, column] as const))
  if (isLongRun) return all
  return Array.from({ length: most }, (_, at) => [
    rows[at % rows.length] as Row,
    columns[at % columns.length] as Column,
  ])
}

/**
 * Returns every `nth` element, beginning with the element at `from`; `pnpm test:long` uses all elements. The tests of
 * several implementations can thus begin at different elements.
 */
export function everyNth<Each>(nth: number, all: readonly Each[], from = 0): readonly Each[] {
  return isLongRun ? all : all.filter((_, at) => at % nth === from % nth)
}
