import { fileURLToPath } from "node:url"
import {
  credentials,
  loadPackageDefinition,
  type Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js"
import { loadSync } from "@grpc/proto-loader"

const PROTO = fileURLToPath(new URL("../../packages/service/proto", import.meta.url))

/** The result of a call. */
export type Called = { readonly value: Readonly<Record<string, unknown>> } | { readonly error: ServiceError }

/** A client that uses only the service's proto files and none of our code. */
export interface Stranger {
  call(
    method: string,
    request: object,
    options?: { readonly metadata?: Metadata; readonly deadline?: number },
  ): Promise<Called>
  close(): void
}

/** Opens a client for a service of a proto file: "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter". */
export function openStranger(
  address: string,
  file: string,
  service: string,
  options: Readonly<Record<string, unknown>> = {},
): Stranger {
  const definition = loadSync(file, {
    includeDirs: [PROTO],
    keepCase: true,
    longs: Number,
    defaults: true,
    enums: String,
  })
  const found = service
    .split(".")
    .reduce<unknown>(
      (holder, part) => (holder as Record<string, unknown>)[part],
      loadPackageDefinition(definition),
    )
  const client = new (found as ServiceClientConstructor)(address, credentials.createInsecure(), options)
  return {
    call: (method, request, { metadata, deadline } = {}) =>
      new Promise((resolve) => {
        const args = [
          request,
          ...(metadata === undefined ? [] : [metadata]),
          ...(deadline === undefined ? [] : [{ deadline }]),
        ]
        client[method]?.(...args, (error: ServiceError | null, value: Readonly<Record<string, unknown>>) =>
          resolve(error === null ? { value } : { error }),
        )
      }),
    close: () => client.close(),
  }
}
