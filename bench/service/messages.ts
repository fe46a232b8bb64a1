/** Number of clients. The requests contain each client in turn. */
const CLIENTS = 10_000
const FORWARD = "/sluice.v1.RateLimiter/ShouldForwardRequest"

/** The messages that are sent to the service repeatedly. */
export interface Workload {
  readonly path: string
  readonly messages: readonly Uint8Array[]
  /** Decisions per call. */
  readonly each: number
}

/** Returns `clients` calls, which each contain one request of a different client. */
export function singly(service: number, clients: number = CLIENTS): Workload {
  const messages = Array.from({ length: clients }, (_, index) => request(service, index))
  return { path: FORWARD, messages, each: 1 }
}

/**
 * Returns calls that each contain `each` requests and the flag for brief results. The requests are from ten thousand
 * clients in turn.
 */
export function inBatches(service: number, each: number): Workload {
  const messages = Array.from({ length: CLIENTS / each }, (_, batch) => {
    const requests = Array.from({ length: each }, (_, index) =>
      tagged(1, request(service, batch * each + index)),
    )
    // brief = 2
    return Buffer.concat([...requests, Buffer.from([0x10, 1])])
  })
  return { path: `${FORWARD}s`, messages, each }
}

/** Encodes a ShouldForwardRequestRequest: service_id = 1, request = 2. */
function request(service: number, client: number): Buffer {
  const text = Buffer.from(JSON.stringify({ user_id: `client-${String(client).padStart(5, "0")}` }))
  return Buffer.concat([Buffer.from([0x08, service]), tagged(2, text)])
}

/** Encodes a length-delimited field. All fields here are short, so the length fits into one byte. */
function tagged(field: number, bytes: Uint8Array): Buffer {
  if (bytes.length > 127) throw new RangeError("A length of one byte is at most 127")
  return Buffer.concat([Buffer.from([(field << 3) | 2, bytes.length]), bytes])
}
