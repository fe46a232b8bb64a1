import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"
import { type JsonBody, jsonText, notAMessage, readBytes, readJsonBody } from "../calls.ts"
import {
  type ShouldForwardRequestRequest,
  ShouldForwardRequestRequestSchema,
  type ShouldForwardRequestResponse,
  ShouldForwardRequestResponseSchema,
  ShouldForwardRequestsRequestSchema,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { StatusError } from "../status-error.ts"
import { answersBytes } from "../wire/answer-bytes.ts"
import { JsonList, JsonScan } from "../wire/json-list.ts"
import { withRequestText } from "./request-object.ts"

/** A batch in one of its formats, read and written request by request. */
export interface BatchFormat {
  /** The number of requests. */
  readonly count: number
  /** Whether the responses omit headers and body. */
  readonly isBrief: boolean
  /** Whether to admit either all requests or none. */
  readonly isAllOrNothing: boolean
  /**
   * Reads the next few requests. Returns a StatusError instead of a request that would take too long to read. Throws
   * StatusError if a request is malformed.
   */
  readNext(): readonly (ShouldForwardRequestRequest | StatusError)[]
  /** Writes the responses to the next requests. */
  write(answers: ShouldForwardRequestResponse[]): void
  /** Returns the message with all responses. */
  written(): Uint8Array
}

interface BatchHead {
  readonly count: number
  readonly isBrief: boolean
  readonly isAllOrNothing: boolean
}

/** The fields of ShouldForwardRequestsRequest. */
const REQUESTS = ShouldForwardRequestsRequestSchema.field.requests.number
const BRIEF = ShouldForwardRequestsRequestSchema.field.brief.number
const ALL_OR_NOTHING = ShouldForwardRequestsRequestSchema.field.allOrNothing.number

/**
 * Maximum number of requests, and approximate maximum of their bytes, to read in one step. Reading costs far less
 * than deciding.
 */
const READ_TOGETHER = 128
const BYTES_TOGETHER = 65_536
/** Maximum number of fields other than the requests. */
const MOST_OTHERS = 1_000

/**
 * Counts the requests of a binary batch without reading them. Stops at malformed data, and when the count exceeds
 * `most`.
 */
export function batchInBytes(
  message: Uint8Array,
  most: number,
): BatchHead & { readonly isMalformed: boolean } {
  const reader = new BinaryReader(message)
  let count = 0
  let isBrief = false
  let isAllOrNothing = false
  let others = 0
  let isMalformed = false
  try {
    while (reader.pos < reader.len && count <= most && !isMalformed) {
      const [field, type] = reader.tag()
      // Reject groups, because skipping a group would loop over its fields. Proto3 has no groups.
      isMalformed = type === WireType.StartGroup || (field === REQUESTS && type !== WireType.LengthDelimited)
      if (isMalformed) break
      if (field === BRIEF && type === WireType.Varint) isBrief = reader.bool()
      else if (field === ALL_OR_NOTHING && type === WireType.Varint) isAllOrNothing = reader.bool()
      else reader.skip(type, field)
      if (field === REQUESTS) count++
      else isMalformed = ++others > MOST_OTHERS
    }
  } catch {
    isMalformed = true
  }
  return { count, isBrief, isAllOrNothing, isMalformed }
}

/** The JSON body of an empty batch. */
const EMPTY_BODY = Buffer.from("{}")

/** A batch as a binary message. */
export class BinaryBatch implements BatchFormat {
  readonly count: number
  readonly isBrief: boolean
  readonly isAllOrNothing: boolean
  readonly #message: Uint8Array
  readonly #reader: BinaryReader
  readonly #pieces: Uint8Array[] = []

  /** Throws StatusError for bytes that are not a message. Counts at most one request more than `most`. */
  constructor(message: Uint8Array, most: number) {
    const { count, isBrief, isAllOrNothing, isMalformed } = batchInBytes(message, most)
    if (isMalformed) throw notAMessage(ShouldForwardRequestsRequestSchema)
    this.count = count
    this.isBrief = isBrief
    this.isAllOrNothing = isAllOrNothing
    this.#message = message
    this.#reader = new BinaryReader(message)
  }

  readNext(): readonly ShouldForwardRequestRequest[] {
    const reader = this.#reader
    const start = reader.pos
    const end = Math.min(reader.len, start + BYTES_TOGETHER)
    for (let left = READ_TOGETHER; left > 0 && reader.pos < end; ) {
      const [field, type] = reader.tag()
      reader.skip(type, field)
      if (field === REQUESTS) left--
    }
    // Read these fields as a message, because any subset of a message's fields is a valid message
    // (https://protobuf.dev/programming-guides/encoding/, "Last One Wins").
    return readBytes(ShouldForwardRequestsRequestSchema, this.#message.subarray(start, reader.pos)).requests
  }

  write(answers: ShouldForwardRequestResponse[]): void {
    this.#pieces.push(answersBytes(answers))
  }

  written(): Uint8Array {
    return this.#pieces.length === 1 ? (this.#pieces[0] as Uint8Array) : Buffer.concat(this.#pieces)
  }
}

/** A batch as JSON. */
export class JsonBatch implements BatchFormat {
  readonly count: number
  readonly isBrief: boolean
  readonly isAllOrNothing: boolean
  readonly #list: JsonList
  readonly #pieces: Uint8Array[] = []
  #read = 0

  /** Throws StatusError if the body contains an unknown field, or if the requests are not an array. */
  constructor(body: JsonBody) {
    this.#list = body instanceof JsonList ? body : new JsonList(EMPTY_BODY, new JsonScan())
    this.count = this.#list.count
    const { brief, allOrNothing } = readJsonBody(ShouldForwardRequestsRequestSchema, this.#list.head())
    this.isBrief = brief
    this.isAllOrNothing = allOrNothing
  }

  readNext(): readonly (ShouldForwardRequestRequest | StatusError)[] {
    return this.#list.next().map((each) => {
      const place = `requests[${this.#read++}]`
      return each instanceof StatusError
        ? each
        : readJsonBody(ShouldForwardRequestRequestSchema, withRequestText(each, `${place}.request`), place)
    })
  }

  write(answers: ShouldForwardRequestResponse[]): void {
    const texts = answers.map((answer) => jsonText(ShouldForwardRequestResponseSchema, answer))
    // Encode each part here, because encoding all responses at the end takes too long for one turn of the event loop.
    this.#pieces.push(Buffer.from(`${this.#pieces.length === 0 ? "" : ","}${texts.join(",")}`))
  }

  written(): Uint8Array {
    return Buffer.concat([Buffer.from('{"responses":['), ...this.#pieces, Buffer.from("]}")])
  }
}
