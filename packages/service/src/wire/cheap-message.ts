import type { DescMessage } from "@bufbuild/protobuf"
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"

/** The fields of a message that contain messages, keyed by field number. */
type Nested = Map<number, Nested>

/** Bytes up to which a message is parsed without counting its fields. */
const SHORT_BYTES = 2_048
/**
 * Cost of a nested message, if a scalar costs 1. A message costs more, because the library creates an object for it.
 */
const MESSAGE_COST = 8

const known = new WeakMap<DescMessage, Nested>()

/**
 * Returns "fields" if parsing a binary message would take too long, because its fields at all levels cost more than
 * `most`. One field costs 1, and a nested message 8. Returns "items" if more than `mostItems` fields have the number
 * `list`. Stops at the first exceeded limit. Throws an Error for bytes that are not a valid message.
 */
export function expensivePart(
  input: DescMessage,
  bytes: Uint8Array,
  most: number,
  list: number | undefined,
  mostItems = 0,
): "fields" | "items" | undefined {
  if (bytes.length <= SHORT_BYTES) return undefined
  const reader = new BinaryReader(bytes)
  const nested = nestedIn(input)
  let left = most
  for (let items = 0; reader.pos < reader.len; ) {
    const start = reader.pos
    if (reader.tag()[0] === list && ++items > mostItems) return "items"
    reader.pos = start
    left = spendField(reader, nested, left)
    if (left < 0) return "fields"
  }
  return undefined
}

function spendField(reader: BinaryReader, nested: Nested, left: number): number {
  const [number, type] = reader.tag()
  const inner = type === WireType.LengthDelimited ? nested.get(number) : undefined
  if (inner === undefined) {
    // Reject groups, because skipping a group would loop over its fields. Proto3 has no groups.
    if (type === WireType.StartGroup) throw new Error("unexpected group")
    reader.skip(type, number)
    return left - 1
  }
  let rest = left - MESSAGE_COST
  const end = reader.uint32() + reader.pos
  if (end > reader.len) throw new RangeError("premature EOF")
  while (reader.pos < end && rest >= 0) rest = spendField(reader, inner, rest)
  return rest
}

function nestedIn(input: DescMessage): Nested {
  let nested = known.get(input)
  if (nested === undefined) {
    nested = new Map()
    known.set(input, nested)
    for (const field of input.fields) {
      const inner = field.message === undefined ? undefined : nestedIn(field.message)
      // In a map entry, the value has the field number 2.
      if (field.fieldKind === "map") nested.set(field.number, new Map(inner && [[2, inner]]))
      else if (inner !== undefined) nested.set(field.number, inner)
    }
  }
  return nested
}
