import { partitionValues } from "@sluice/core/kit"

/** The client of a request that lacks the rule's field. */
export const NO_FIELD = "without the field"
const EVERY_CLIENT = "every client"

/**
 * Returns the client as `sluice clients show` takes it. No client's own value looks like the other texts, because a value
 * with a space is quoted.
 */
export function clientText(key: string, empty: string = EVERY_CLIENT): string {
  if (key === "") return empty
  if (key === "@shared") return NO_FIELD
  if (key.startsWith("@ip:")) return `${key.slice("@ip:".length)} ${NO_FIELD}`
  // A long value is known by its hash only.
  const values = partitionValues(key) ?? [key]
  // The client chooses the value, so it must not become an option of the command.
  const isOption = values.some((value) => value.startsWith("-"))
  return [...(isOption ? ["--"] : []), ...values.map(shellArgument)].join(" ")
}

function shellArgument(value: string): string {
  return /^[\p{L}\p{N}_.:/+@][\p{L}\p{N}_.:/+@-]*$/u.test(value)
    ? value
    : `'${value.replaceAll("'", "'\\''")}'`
}
