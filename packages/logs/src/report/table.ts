import { count, percent } from "../quantities.ts"
import { type Html, type HtmlContent, html } from "./html.ts"

/** A column of a table. Numbers are aligned to the right. */
export interface Column {
  readonly title: HtmlContent
  readonly isNumber?: boolean
}

/** A cell. `value` is what the script of the page sorts by. */
export interface Cell {
  readonly shown: HtmlContent
  readonly value?: number | string
  /** Number of columns that the cell spans. */
  readonly span?: number
  readonly className?: string
}

export interface TableRow {
  readonly cells: readonly Cell[]
  readonly kind?: "total" | "detail"
}

export interface HtmlTable {
  readonly caption: string
  readonly columns: readonly Column[]
  readonly rows: readonly TableRow[]
  /**
   * True if the table contains the data of a plot. The caption is then hidden, because a summary above the table
   * already describes it.
   */
  readonly isData?: boolean
  /** The column by which the rows are sorted. If present, the script of the page makes the table sortable. */
  readonly sortedBy?: number
}

/** A table with more columns fills the width of the page. */
const WIDE = 5

/** Returns a table that scrolls within the page if it is too wide. The first cell of each row is its header. */
export function table({ caption, columns, rows, isData, sortedBy }: HtmlTable): Html {
  const isSorted = sortedBy !== undefined
  const frame = isSorted ? "scroll tall" : isData === true ? "scroll data" : "scroll"
  const kind = columns.length > WIDE && html` class="wide"`
  return html`<div class="${frame}" role="group" aria-label="${caption}" tabindex="0">
<table${kind}${isSorted && html` data-sortable`}>
<caption${isData === true && html` class="hidden"`}>${caption}</caption>
<thead><tr>${columns.map(
    ({ title, isNumber }, i) =>
      html`<th scope="col"${isNumber === true && html` class="n"`}${i === sortedBy && html` aria-sort="descending"`}>${title}</th>`,
  )}</tr></thead>
<tbody>${rows.map((row) => rowOf(row, columns, isSorted))}</tbody>
</table></div>`
}

function rowOf({ cells, kind }: TableRow, columns: readonly Column[], isSorted: boolean): Html {
  let column = 0
  const shown = cells.map(({ shown, value, span = 1, className }, i) => {
    const isNumber = columns[column]?.isNumber === true && span === 1
    column += span
    const classes = [isNumber ? "n" : "", className ?? ""].filter((name) => name !== "").join(" ")
    const attributes = html`${classes !== "" && html` class="${classes}"`}${
      span > 1 && html` colspan="${span}"`
    }${isSorted && value !== undefined && html` data-value="${value}"`}`
    return i === 0 ? html`<th scope="row"${attributes}>${shown}</th>` : html`<td${attributes}>${shown}</td>`
  })
  return html`<tr${kind !== undefined && html` class="${kind}"`}>${shown}</tr>\n`
}

/** Returns a cell with text. */
export function textCell(text: HtmlContent): Cell {
  return { shown: text }
}

/** Returns a cell with a count. */
export function countCell(value: number): Cell {
  return { shown: count(value), value }
}

/** Returns a cell with a share in percent. */
export function shareCell(part: number, whole: number): Cell {
  return { shown: percent(part, whole), value: whole === 0 ? -1 : part / whole }
}

/** Returns a collapsed table that contains the data of the plot above it. */
export function dataTable(summary: string, options: Omit<HtmlTable, "isData">): Html {
  return html`<details><summary>${summary}</summary>${table({ ...options, isData: true })}</details>`
}
