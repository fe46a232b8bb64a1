/**
 * Integers packed into a string of printable ASCII. The first digit is the number of digits per integer, and the
 * integers follow. The digits are the 64 characters from "0", in base 64. The empty string stands for an empty array.
 *
 * Sub-windows are packed with the latest first and without zeros at the end. So most of the string stays the same as
 * time passes, and the string of a new client is short.
 */
const DIGITS = 64
const FIRST_DIGIT = 48

/**
 * Whether the value is absent, empty, or a string whose first character is a valid width. With any other width, reading
 * the numbers would never end.
 */
export function isPacked(text: unknown): text is string | undefined {
  return text === undefined || text === "" || (typeof text === "string" && /^[1-9]/.test(text))
}

/** Returns how many numbers are packed. */
export function countOf(packed: string): number {
  return packed === "" ? 0 : (packed.length - 1) / widthOf(packed)
}

/** Returns the number at an index from 0, or 0 beyond the end. */
export function numberAt(packed: string, index: number): number {
  if (packed === "") return 0
  const width = widthOf(packed)
  return parseDigits(packed, 1 + index * width, width)
}

/** Packs the numbers with as many digits as the largest number needs. Omits zeros at the end. */
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
 * Returns `empty` zeros, then `number`, then the first `kept` of the packed numbers. The result contains the
 * sub-windows after time has passed. The number of digits stays the same, or grows if `number` needs more.
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

/** Returns the packed numbers as an array. */
export function unpack(packed: string): number[] {
  return Array.from({ length: countOf(packed) }, (_, index) => numberAt(packed, index))
}

/** Returns the number of digits, from 1 to 9, for numbers up to `most`. */
export function digitsFor(most: number): number {
  let width = 1
  for (let bound = DIGITS; bound <= most; bound *= DIGITS) width++
  return width
}

/** Returns a number below 64 to the power of `width` as a string of `width` digits. */
export function digits(number: number, width: number): string {
  let text = ""
  let rest = number
  for (let i = 0; i < width; i++) {
    text = String.fromCharCode(FIRST_DIGIT + (rest % DIGITS)) + text
    rest = Math.floor(rest / DIGITS)
  }
  return text
}

/**
 * Returns the number that consists of `width` digits from an index of the string on. Digits beyond the end count as
 * 0.
 */
export function parseDigits(text: string, from: number, width: number): number {
  let number = 0
  for (let at = from; at < from + width; at++) {
    number = number * DIGITS + (at < text.length ? text.charCodeAt(at) - FIRST_DIGIT : 0)
  }
  return number
}

/**
 * Returns the same string in one piece. V8 stores a concatenated or sliced string as a tree of its pieces until it is
 * read. Such a tree would make a counter in memory ten times as large.
 */
export function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1")
}

function widthOf(packed: string): number {
  return packed.charCodeAt(0) - FIRST_DIGIT
}
