import { ServerCredentials } from "@grpc/grpc-js"
import type { Tls } from "../tls.ts"

/** With an authority for callers, who has no certificate of it is refused. */
export function grpcCredentials(tls: Tls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  const { cert, key, clientCa } = tls
  const pair = { private_key: key, cert_chain: cert }
  return ServerCredentials.createSsl(clientCa ?? null, [pair], clientCa !== undefined)
}
