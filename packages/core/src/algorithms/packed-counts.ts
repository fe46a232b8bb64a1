/**
 * Whole numbers packed into a text that is safe wherever text is: a digit that says how many digits each number has, and
 * the numbers. The digits are the 64 characters from "0", in base 64. The empty text has no numbers.
 *
 * Sub-windows are packed with the latest first and without empty ones at the end, so that most of a text stays as it is
 * when time goes on, and a client that has just come takes little.
 */
const DIGITS = 64
const FIRST_DIGIT = 48

/** Whether it is such a text by its first character, or none: with any other the numbers of it would never end. */
export function isPacked(text: unknown): text is string | undefined {
  return text === undefined || text === "" || (typeof text === "string" && /^[1-9]/.test(text))
}

/** How many numbers there are. */
export function countOf(packed: string): number {
  return packed === "" ? 0 : (packed.length - 1) / widthOf(packed)
}

/** The number at an index from 0; 0 where there is none. */
export function numberAt(packed: string, index: number): number {
  if (packed === "") return 0
  const width = widthOf(packed)
  return parseDigits(packed, 1 + index * width, width)
}

/** The numbers, put together with as many digits as the largest of them needs; those of 0 at the end are left out. */
export function pack(numbers: readonly number[]): string {
  let length = numbers.length
  while (length > 0 && numbers[length - 1] === 0) length--
  if (length === 0) return ""
  let most = 0
  for (let i = 0; i < length; i++) most = Math.max(most, numbers[i] as number)
  const width = digitsFor(most)
  let text = digits(width, 1)
  for (let i = 0; i < length; i++) text += digits(numbers[i] as number, width)
  return flat(text)
}

/**
 * The first `kept` of the numbers, behind a number that is put before them and so many empty ones before that: what
 * there is when time goes on. All have as many digits as before, or more where the new one needs them.
 */
export function shift(packed: string, empty: number, number: number, kept: number): string {
  const width = packed === "" ? 1 : widthOf(packed)
  let end = 1 + kept * width
  while (end > 1 && parseDigits(packed, end - width, width) === 0) end -= width
  if (end === 1 || number >= DIGITS ** width) {
    return pack([...new Array<number>(empty).fill(0), number, ...unpack(packed.slice(0, end))])
  }
  return flat(digits(width, 1) + "0".repeat(empty * width) + digits(number, width) + packed.slice(1, end))
}

/** The numbers, as a list. */
export function unpack(packed: string): number[] {
  return Array.from({ length: countOf(packed) }, (_, index) => numberAt(packed, index))
}

/** How many digits every number up to this one fits in: 1 to 9. */
export function digitsFor(most: number): number {
  let width = 1
  for (let bound = DIGITS; bound <= most; bound *= DIGITS) width++
  return width
}

/** A number below 64 to the power of `width`, with so many digits. */
export function digits(number: number, width: number): string {
  let text = ""
  let rest = number
  for (let i = 0; i < width; i++) {
    text = String.fromCharCode(FIRST_DIGIT + (rest % DIGITS)) + text
    rest = Math.floor(rest / DIGITS)
  }
  return text
}

/** The number of so many digits from there; digits beyond the end count as 0. */
export function parseDigits(text: string, from: number, width: number): number {
  let number = 0
  for (let at = from; at < from + width; at++) {
    number = number * DIGITS + (at < text.length ? text.charCodeAt(at) - FIRST_DIGIT : 0)
  }
  return number
}

/**
 * The same text in one piece. V8 keeps one that was put together or cut as a tree of its pieces until somebody reads it,
 * and a counter in memory would be ten times as large.
 */
export function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1")
}

function widthOf(packed: string): number {
  return packed.charCodeAt(0) - FIRST_DIGIT
}
