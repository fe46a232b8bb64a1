import { Client, type ClientReadableStream, credentials, type ServiceError } from "@grpc/grpc-js"

/** Statuses of grpc.health.v1 by their numbers. */
const STATUSES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const

/** A status, or the code of the error that came in its place. */
export type Said = (typeof STATUSES)[number] | number

/** A client of gRPC's health service that knows no more than its bytes: service = 1 in the request, status = 1 in the answer. */
export interface HealthClient {
  check(service: string): Promise<Said>
  /** What is told as it is told; ended is when the server ends it. */
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
