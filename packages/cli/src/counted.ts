const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })

/** Returns a count with its noun, such as "1 client" or "2,000 clients". */
export function counted(value: number, noun: string): string {
  return `${COUNT.format(value)} ${noun}${value === 1 ? "" : "s"}`
}
