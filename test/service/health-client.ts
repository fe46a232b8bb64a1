import { Client, type ClientReadableStream, credentials, type ServiceError } from "@grpc/grpc-js"

/** The statuses of grpc.health.v1, indexed by number. */
const STATUSES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const

/** A status, or the code of an error. */
export type Said = (typeof STATUSES)[number] | number

/**
 * A client of the gRPC health service that encodes messages by hand. Field 1 contains the service in requests and the
 * status in responses.
 */
export interface HealthClient {
  check(service: string): Promise<Said>
  /** Collects the statuses as they arrive. `ended` resolves when the server ends the stream. */
  watch(service: string): { readonly said: Said[]; readonly ended: Promise<void> }
  close(): void
}

export function openHealth(address: string): HealthClient {
  const client = new Client(address, credentials.createInsecure())
  const encode = (service: string): Buffer => {
    const name = Buffer.from(service)
    return Buffer.concat([Buffer.from([0x0a, name.length]), name])
  }
  const decode = (bytes: Buffer): Said => STATUSES[bytes[1] ?? 0] as Said
  return {
    check: (service) =>
      new Promise((resolve) => {
        client.makeUnaryRequest("/grpc.health.v1.Health/Check", encode, decode, service, (error, said) =>
          resolve(error === null ? (said as Said) : error.code),
        )
      }),
    watch(service) {
      const said: Said[] = []
      const stream: ClientReadableStream<Said> = client.makeServerStreamRequest(
        "/grpc.health.v1.Health/Watch",
        encode,
        decode,
        service,
      )
      const ended = new Promise<void>((resolve) => {
        stream
          .on("data", (status: Said) => said.push(status))
          .on("error", ({ code }: ServiceError) => said.push(code))
          .on("close", resolve)
          .on("end", resolve)
      })
      return { said, ended }
    },
    close: () => client.close(),
  }
}
