/** Returns the rows of the table whose first heading is `heading`, as cells. */
export function rowsOf(markdown: string, heading: string): string[][] {
  const [, table = ""] = markdown.split(`\n| ${heading} | `)
  const lines = table.split("\n").slice(2)
  const end = lines.findIndex((line) => !line.startsWith("|"))
  return lines.slice(0, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}
