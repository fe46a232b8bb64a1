import { printTable } from "../report/table.ts"
import type { Measurement, Part, Quantity } from "./measurement.ts"

const TITLES: Readonly<Record<Part, string>> = {
  "in-process": "counting one request in the memory of a process",
  redis: "counting one request in Redis",
  http: "whole requests over HTTP",
  memory: "memory",
  bound: "the worst case",
  accuracy: "accuracy",
}

/** Figures from this size are rounded to whole numbers. */
const WHOLE_FROM = 1_000

/** Prints a table for each quantity of a part, with a row for each contender and a column for each workload. */
export function printPart(part: Part, measurements: readonly Measurement[]): void {
  for (const quantity of new Set(measurements.map((one) => one.quantity)))
    printQuantity(
      `${TITLES[part]}: ${quantity}`,
      measurements.filter((one) => one.quantity === quantity),
    )
}

function printQuantity(title: string, measurements: readonly Measurement[]): void {
  const columns = [...new Set(measurements.map(whereOf))]
  const rows = [...new Set(measurements.map(({ contender }) => contender))]
  printTable(
    `${title}${measurements.some(({ samples }) => samples > 1) ? ": medians, and half the spread" : ""}`,
    ["", ...columns],
    rows.map((row) => [
      row,
      ...columns.map((column) => {
        const found = measurements.find((one) => one.contender === row && whereOf(one) === column)
        return found === undefined ? "" : shown(found)
      }),
    ]),
  )
}

/** Returns the workload and the number of requests in flight as a heading. */
export function whereOf({ workload, inFlight }: Measurement): string {
  return inFlight === undefined ? workload : `${workload}, ${inFlight}`
}

function shown({ median, least, most, samples, promised, quantity }: Measurement): string {
  const figure = withDigits(median, quantity)
  if (promised !== undefined) return `${figure} of ${withDigits(promised, quantity)}`
  if (samples === 1) return figure
  return `${figure} ±${(((most - least) / 2 / median) * 100).toFixed(0)}%`
}

function withDigits(value: number, quantity: Quantity): string {
  if (quantity === "share of what an exact log admits") return value.toFixed(3)
  return value.toFixed(value >= WHOLE_FROM ? 0 : 2)
}
