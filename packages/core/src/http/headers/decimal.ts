/** Texts of three digits, by their number. */
const THREE_DIGITS: readonly string[] = Array.from({ length: 1000 }, (_, value) =>
  String(value).padStart(3, "0"),
)

/**
 * The digits of a whole number from 0 to 2^53 - 1, put together from texts that are there already. V8 keeps what it has
 * written a number as, thousands of them, so the text of each number that is another one outlives its response: two garbage
 * collections copy it.
 */
export function decimal(value: number): string {
  let digits = ""
  let rest = value
  // Stryker disable next-line ConditionalExpression,EqualityOperator: what is not put together is written the same
  while (rest >= 1000) {
    const last = rest % 1000
    digits = THREE_DIGITS[last] + digits
    rest = (rest - last) / 1000
  }
  return rest + digits
}
