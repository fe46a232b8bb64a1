/** Makes a table sortable by the buttons that it puts into the headers of the columns. */
export function makeSortable(table: HTMLTableElement): void {
  const headers = [...(table.tHead?.rows[0]?.cells ?? [])]
  headers.forEach((header, column) => {
    const button = document.createElement("button")
    button.type = "button"
    button.append(...header.childNodes)
    header.append(button)
    button.addEventListener("click", () => {
      const isNumber = header.classList.contains("n")
      const current = header.getAttribute("aria-sort")
      // Sort numbers from the largest and names from A, because readers expect this order.
      const order = current === null ? isNumber : current === "ascending"
      for (const other of headers) other.removeAttribute("aria-sort")
      header.setAttribute("aria-sort", order ? "descending" : "ascending")
      sortRows(table, column, order)
    })
  })
}

function sortRows(table: HTMLTableElement, column: number, isDescending: boolean): void {
  const body = table.tBodies[0]
  if (body === undefined) return
  const rows = [...body.rows].map((row) => ({ row, value: sortValue(row.cells[column]) }))
  const sign = isDescending ? -1 : 1
  rows.sort((one, other) => sign * compare(one.value, other.value))
  body.append(...rows.map(({ row }) => row))
}

function sortValue(cell: HTMLTableCellElement | undefined): string | number {
  const text = cell?.dataset.value ?? cell?.textContent ?? ""
  return cell?.classList.contains("name") || text.trim() === "" || Number.isNaN(Number(text))
    ? text
    : Number(text)
}

const COLLATOR = new Intl.Collator("en", { numeric: true })

function compare(one: string | number, other: string | number): number {
  if (typeof one === "number" && typeof other === "number") return one - other
  return COLLATOR.compare(String(one), String(other))
}
