import type { JsonValue } from "@bufbuild/protobuf"
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"
import { jsonText, notAMessage, readBytes, readJsonBody } from "../calls.ts"
import {
  type ShouldForwardRequestRequest,
  ShouldForwardRequestRequestSchema,
  type ShouldForwardRequestResponse,
  ShouldForwardRequestResponseSchema,
  ShouldForwardRequestsRequestSchema,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { answersBytes } from "../wire/answer-bytes.ts"
import { withRequestText } from "./request-object.ts"

/** A batch in one of its formats, read and written request by request. */
export interface BatchFormat {
  /** The number of requests. */
  readonly count: number
  /** Whether headers and body are left out of the answers. */
  readonly isBrief: boolean
  /** Whether all requests are admitted, or none. */
  readonly isAllOrNothing: boolean
  /** Reads the next requests, at most `most`. Throws StatusError if one is malformed. */
  readNext(most: number): readonly ShouldForwardRequestRequest[]
  /** Writes the answers to the next requests. */
  write(answers: ShouldForwardRequestResponse[]): void
  /** Returns the message with all answers. */
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

/** Counts the requests of a binary batch without reading them. Stops where the batch is malformed. */
export function batchInBytes(message: Uint8Array): BatchHead & { readonly isMalformed: boolean } {
  const reader = new BinaryReader(message)
  let count = 0
  let isBrief = false
  let isAllOrNothing = false
  try {
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag()
      if (field === BRIEF && type === WireType.Varint) isBrief = reader.bool()
      else if (field === ALL_OR_NOTHING && type === WireType.Varint) isAllOrNothing = reader.bool()
      else reader.skip(type, field)
      if (field !== REQUESTS) continue
      if (type !== WireType.LengthDelimited) return { count, isBrief, isAllOrNothing, isMalformed: true }
      count++
    }
  } catch {
    return { count, isBrief, isAllOrNothing, isMalformed: true }
  }
  return { count, isBrief, isAllOrNothing, isMalformed: false }
}

/** Counts the requests of a batch in JSON. */
export function batchInJson(body: JsonValue): { readonly count: number } {
  return { count: requestsIn(body).length }
}

function requestsIn(body: JsonValue): JsonValue[] {
  const requests = (body as { readonly requests?: JsonValue } | null)?.requests
  return Array.isArray(requests) ? requests : []
}

/** A batch as a binary message. */
export class BinaryBatch implements BatchFormat {
  readonly count: number
  readonly isBrief: boolean
  readonly isAllOrNothing: boolean
  readonly #message: Uint8Array
  readonly #reader: BinaryReader
  readonly #pieces: Uint8Array[] = []

  /** Throws StatusError for bytes that are not a message. */
  constructor(message: Uint8Array) {
    const { count, isBrief, isAllOrNothing, isMalformed } = batchInBytes(message)
    if (isMalformed) throw notAMessage(ShouldForwardRequestsRequestSchema)
    this.count = count
    this.isBrief = isBrief
    this.isAllOrNothing = isAllOrNothing
    this.#message = message
    this.#reader = new BinaryReader(message)
  }

  readNext(most: number): readonly ShouldForwardRequestRequest[] {
    const reader = this.#reader
    const start = reader.pos
    for (let left = most; left > 0 && reader.pos < reader.len; ) {
      const [field, type] = reader.tag()
      reader.skip(type, field)
      if (field === REQUESTS) left--
    }
    // Any subset of the fields of a message is a valid message (https://protobuf.dev/programming-guides/encoding/,
    // "Last One Wins").
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
  readonly #requests: JsonValue[]
  readonly #pieces: Uint8Array[] = []
  #read = 0

  /** Throws StatusError for an unknown field next to the requests, and if the requests are not a list. */
  constructor(body: JsonValue) {
    this.#requests = requestsIn(body)
    this.count = this.#requests.length
    const head = this.count === 0 ? body : { ...(body as object), requests: [] }
    const { brief, allOrNothing } = readJsonBody(ShouldForwardRequestsRequestSchema, head)
    this.isBrief = brief
    this.isAllOrNothing = allOrNothing
  }

  readNext(most: number): readonly ShouldForwardRequestRequest[] {
    const start = this.#read
    this.#read = Math.min(this.count, start + most)
    const next = this.#requests.slice(start, this.#read)
    // Free the requests that have been read: a batch may wait for hours.
    this.#requests.fill(null, start, this.#read)
    return next.map((each, offset) => {
      const place = `requests[${start + offset}]`
      return readJsonBody(ShouldForwardRequestRequestSchema, withRequestText(each, `${place}.request`), place)
    })
  }

  write(answers: ShouldForwardRequestResponse[]): void {
    const texts = answers.map((answer) => jsonText(ShouldForwardRequestResponseSchema, answer))
    // Encode each part here. Encoding all answers at once takes too long for one turn of the event loop.
    this.#pieces.push(Buffer.from(`${this.#pieces.length === 0 ? "" : ","}${texts.join(",")}`))
  }

  written(): Uint8Array {
    return Buffer.concat([Buffer.from('{"responses":['), ...this.#pieces, Buffer.from("]}")])
  }
}
