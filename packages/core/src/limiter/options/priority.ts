const MOST = 1_000

/** The accepted form of a priority, for messages. */
export const PRIORITY: string = `a whole number from ${-MOST} to ${MOST}`

/** Whether a value is a valid priority. */
export function isPriority(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(value as number) <= MOST
}
