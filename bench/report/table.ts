/** Prints a table. The first column is aligned to the left, and all other columns to the right. */
export function printTable(
  title: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  const widths = header.map((head, column) =>
    Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
  console.log(`\n${title}\n${line(header)}\n${widths.map((width) => "-".repeat(width)).join("  ")}`)
  for (const row of rows) console.log(line(row))
}

/** Prints a target with the measured figure. */
export function printWanted(what: string, measured: number, isMet: boolean, wanted: string): void {
  console.log(`${isMet ? "met   " : "MISSED"}  ${what}: ${measured.toFixed(2)}, wanted ${wanted}`)
}
