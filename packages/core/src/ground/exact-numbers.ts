/**
 * Matches the possible start of a number that has 16 or more digits or an exponent. All other numbers are exact in
 * JavaScript.
 */
const MAY_CHANGE = /(?:^|[:,[\s])-?(?:[\d.]{16}|\d[\d.]*[eE])/
/** Matches the strings and the numbers of a valid JSON text. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[-+.\deE]*/g

/**
 * Returns a JSON text in which each number that JavaScript cannot represent, or would write with an exponent, is a
 * string with all of its digits. Otherwise 12345678901234567 and 12345678901234568 would be one client. Use this
 * function before you parse a request body whose ids may be that long. Other numbers do not change: 5, 5.0 and 5e0
 * are the same number. A number of more than 1,000 characters becomes a string with the same characters. Returns
 * invalid JSON unchanged.
 * @example
 * ```ts
 * import { withExactNumbers } from "@sluice/core"
 *
 * JSON.parse(withExactNumbers('{"id": 12345678901234567}')) // { id: "12345678901234567" }
 * ```
 */
export function withExactNumbers(json: string): string {
  if (!MAY_CHANGE.test(json)) return json
  try {
    // Do not change invalid JSON, because the added quotes could make it valid.
    JSON.parse(json)
  } catch {
    return json
  }
  return json.replace(TOKENS, (token) => {
    if (token.startsWith('"')) return token
    // Do not parse such a number, because that would take long, and no id has so many digits.
    if (token.length > 1_000) return `"${token}"`
    const exact = decimal(token)
    return String(Number(token)) === exact ? token : `"${exact}"`
  })
}

/**
 * Returns the exact value of a JSON number, in the form in which JavaScript writes numbers, with up to 1,000 digits.
 */
function decimal(number: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(number) ?? []
  const all = whole + fraction
  const digits = all.replace(/^0+/, "")
  let end = digits.length
  // Do not use a regular expression, because it would take quadratic time if there are zeros between other digits.
  while (digits[end - 1] === "0") end--
  if (end === 0) return "0"
  const short = digits.slice(0, end)
  /** The number of digits before the decimal point. */
  const point = whole.length - (all.length - digits.length) + Number(exponent)
  if (point > 1_000 || point < -5) {
    const rest = end > 1 ? `.${short.slice(1)}` : ""
    return `${sign}${short[0]}${rest}e${point > 0 ? "+" : ""}${point - 1}`
  }
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${short}`
  return sign + (point < end ? `${short.slice(0, point)}.${short.slice(point)}` : short.padEnd(point, "0"))
}
