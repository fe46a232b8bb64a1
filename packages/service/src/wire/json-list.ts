import type { JsonValue } from "@bufbuild/protobuf"
import { withExactNumbers } from "@sluice/core"
import { Code, invalidArgument, StatusError } from "../status-error.ts"

/** The bounds for a list in a message. */
export interface ListBound {
  /** The member of the JSON body that contains the list. */
  readonly name: string
  /** Maximum number of items. The handler of the call refuses a longer list. */
  readonly most: number
  /** Number of items after which the message is refused without counting the rest. */
  readonly mostCounted: number
}

/** Creates the error for a list with more than `mostCounted` items. */
export function tooManyItems({ name, most, mostCounted }: ListBound): StatusError {
  const description = `has more than ${mostCounted} ${name}; at most ${most} are accepted`
  return invalidArgument({ field: name, description })
}

/** Items of a list that are parsed together. */
interface ItemGroup {
  readonly start: number
  readonly end: number
  readonly count: number
  /** True for a single item that would take too long to parse. */
  readonly isExpensive: boolean
}

/** Maximum number of items, and approximate maximum of their bytes, that are parsed together. */
const GROUP_ITEMS = 128
const GROUP_BYTES = 65_536
/**
 * Maximum number of members and elements, at all levels, in the description of a request. Parsing each of them takes
 * about 0.5 µs.
 */
export const MOST_VALUES = 8_192
/** Maximum number of members and elements in a list of rules, such as 1,000 rules with 100 addresses each. */
export const MOST_VALUES_OF_RULES = 131_072
/** Maximum bytes of an item. The text of a request has at most 64 KiB, and an escape takes 6 bytes. */
const MOST_ITEM_BYTES = 524_288

/** Maximum bytes of a member name in an error message. */
const LONGEST_KEY = 64

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Counts the values of a JSON text, and finds the items of a list, without parsing them. The text is scanned while it
 * arrives, so that a text with too many values is refused before JSON.parse would create them. Invalid JSON is
 * detected later, when the parts of the text are parsed.
 */
export class JsonScan {
  /** Number of items found in the list so far. */
  count = 0
  readonly groups: ItemGroup[] = []
  /** Positions after the opening bracket and before the closing bracket of the list. Negative until found. */
  listStart = -1
  listEnd = -1
  readonly #list: ListBound | undefined
  readonly #countsItems: boolean
  readonly #mostValues: number
  #at = 0
  #depth = 0
  #isInString = false
  /** Start of the latest string, and whether the string contains an escape. */
  #stringAt = 0
  #isEscaped = false
  #key = ""
  #isInList = false
  #values = 0
  #itemValues = 0
  #itemAt = 0
  #groupAt = 0
  #inGroup = 0

  /**
   * `mostValues` limits the number of all values. If absent, the limit is 8,192 values outside of the list, and 8,192
   * in each item. An item that exceeds this limit does not prevent the other items from being read.
   */
  constructor(list?: ListBound | undefined, mostValues?: number | undefined) {
    this.#list = list
    this.#countsItems = mostValues === undefined
    this.#mostValues = mostValues ?? MOST_VALUES
  }

  /**
   * Scans the text from where the previous call ended. `bytes` is the whole text that has arrived so far. Throws
   * StatusError.
   */
  read(bytes: Buffer): void {
    const end = bytes.length
    let at = this.#at
    let isInString = this.#isInString
    while (at < end) {
      const byte = bytes[at++]
      if (isInString) {
        if (byte === QUOTE) {
          isInString = false
          this.#endString(bytes, at - 1)
        } else if (byte === BACKSLASH) {
          this.#isEscaped = true
          at++
        }
      } else if (byte === QUOTE) {
        isInString = true
        this.#isEscaped = false
        this.#stringAt = at
      } else if (byte === COMMA) this.#next(at - 1)
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#open(byte, at)
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#close(byte, at - 1, bytes)
    }
    this.#at = at
    this.#isInString = isInString
  }

  /** Throws StatusError if the list does not end, or if the rest of the body would take too long to parse. */
  finish(): void {
    if (this.listStart >= 0 && this.listEnd < 0) throw invalidBody("its end is missing")
    if (this.#at - Math.max(0, this.listEnd - this.listStart) <= MOST_ITEM_BYTES) return
    const message = `The body has more than ${MOST_ITEM_BYTES} bytes outside its list; send fewer.`
    throw new StatusError(Code.INVALID_ARGUMENT, message)
  }

  #endString(bytes: Buffer, end: number): void {
    if (this.#depth !== 1 || this.#key !== "") return
    if (this.#isEscaped && this.#list !== undefined) {
      throw invalidBody("a member name contains an escape; write the name without escapes")
    }
    this.#key = bytes.toString("latin1", this.#stringAt, Math.min(end, this.#stringAt + LONGEST_KEY))
  }

  #open(byte: number, at: number): void {
    this.#countValue()
    if (++this.#depth !== 2 || byte !== OPEN_BRACKET || this.#key !== this.#list?.name) return
    if (this.listStart >= 0)
      throw invalidArgument({ field: this.#key, description: "is given twice; give it once" })
    this.#isInList = true
    this.listStart = at
    this.#itemAt = at
    this.#groupAt = at
  }

  #close(byte: number, at: number, bytes: Buffer): void {
    if (this.#isInList && this.#depth === 2) {
      if (byte !== CLOSE_BRACKET) throw invalidBody("a list ends with a brace")
      if (this.count > 0 || !isBlank(bytes, this.#itemAt, at)) this.#endItem(at, true)
      this.#isInList = false
      this.listEnd = at
    }
    this.#depth--
  }

  #next(at: number): void {
    if (this.#isInList && this.#depth === 2) {
      this.#endItem(at, false)
      return
    }
    if (this.#depth === 1) this.#key = ""
    this.#countValue()
  }

  #countValue(): void {
    if (this.#isInList && this.#countsItems) this.#itemValues++
    else if (++this.#values > this.#mostValues) throw tooManyValues(this.#key || "body", this.#mostValues)
  }

  #endItem(end: number, isLast: boolean): void {
    const list = this.#list as ListBound
    if (++this.count > list.mostCounted) throw tooManyItems(list)
    const isExpensive = this.#itemValues > MOST_VALUES || end - this.#itemAt > MOST_ITEM_BYTES
    if (isExpensive) {
      if (this.#inGroup > 0) this.#endGroup(this.#itemAt - 1, false)
      this.#groupAt = this.#itemAt
    }
    this.#inGroup++
    if (isExpensive || isLast || this.#inGroup === GROUP_ITEMS || end - this.#groupAt > GROUP_BYTES)
      this.#endGroup(end, isExpensive)
    this.#itemAt = end + 1
    this.#itemValues = 0
  }

  #endGroup(end: number, isExpensive: boolean): void {
    this.groups.push({ start: this.#groupAt, end, count: this.#inGroup, isExpensive })
    this.#groupAt = end + 1
    this.#inGroup = 0
  }
}

const NOTHING = Buffer.alloc(0)

/** A JSON body whose list is parsed in groups of items, so that no turn of the event loop takes long. */
export class JsonList {
  /** Number of items. */
  readonly count: number
  #bytes: Buffer
  readonly #scan: JsonScan
  #group = 0
  #read = 0

  /** `scan` must have read all bytes of the body. */
  constructor(bytes: Buffer, scan: JsonScan) {
    this.#bytes = bytes
    this.#scan = scan
    this.count = scan.count
  }

  /** Returns the body with an empty list. Throws StatusError if it is not valid JSON. */
  head(): JsonValue {
    const { listStart, listEnd } = this.#scan
    this.#scan.finish()
    if (listStart < 0) return parse(this.#bytes.toString())
    return parse(this.#bytes.toString("utf8", 0, listStart) + this.#bytes.toString("utf8", listEnd))
  }

  /**
   * Returns the next items. Returns an error instead of an item that would take too long to parse. Throws
   * StatusError.
   */
  next(): readonly (JsonValue | StatusError)[] {
    const { groups } = this.#scan
    const { start, end, count, isExpensive } = groups[this.#group++] as ItemGroup
    const text = isExpensive ? "" : this.#bytes.toString("utf8", start, end)
    const place = this.#read
    this.#read += count
    // Free the body after the last group, because a batch may wait for hours.
    if (this.#group === groups.length) this.#bytes = NOTHING
    if (isExpensive) return [tooExpensive(place)]
    const items = parse(`[${text}]`) as JsonValue[]
    // Check the number of items, because a trailing comma would result in a group that parses as an empty array.
    if (items.length !== count) throw invalidBody("a comma is not followed by a value")
    return items
  }
}

/** Throws StatusError if the JSON text of a request has so many values that it would take too long to parse. */
export function requireFewValues(text: string): void {
  if (text.length <= MOST_VALUES) return
  try {
    new JsonScan().read(Buffer.from(text))
  } catch {
    throw tooManyValues("request", MOST_VALUES)
  }
}

function tooManyValues(field: string, most: number): StatusError {
  return invalidArgument({ field, description: `has more than ${most} values; send fewer` })
}

function tooExpensive(place: number): StatusError {
  const description = `has more than ${MOST_VALUES} values or ${MOST_ITEM_BYTES} bytes; send fewer`
  return invalidArgument({ field: `requests[${place}]`, description })
}

function invalidBody(why: string): StatusError {
  return new StatusError(Code.INVALID_ARGUMENT, `The body is not valid JSON: ${why}.`)
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(withExactNumbers(text)) as JsonValue
  } catch (error) {
    throw invalidBody((error as Error).message)
  }
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((bytes[at] as number) > 0x20) return false
  return true
}
