import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext } from "node:tls"
import type { Tls } from "../tls.ts"
import type { TlsFiles } from "./settings.ts"

/** Reads the files. Throws an Error that names the one that cannot be used. */
export function readTls({ cert, key, clientCa }: TlsFiles): Tls {
  const tls: Tls = {
    cert: read("--tls-cert", cert),
    key: read("--tls-key", key),
    clientCa: clientCa === undefined ? undefined : read("--tls-client-ca", clientCa),
  }
  check(`--tls-cert ${JSON.stringify(cert)} and --tls-key ${JSON.stringify(key)}`, () =>
    createSecureContext({ cert: tls.cert, key: tls.key }),
  )
  const { clientCa: authority } = tls
  // A context takes any bytes for an authority, and nobody is signed by those.
  if (authority !== undefined)
    check(`--tls-client-ca ${JSON.stringify(clientCa)}`, () => new X509Certificate(authority))
  return tls
}

function read(flag: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new Error(
      `${flag} ${JSON.stringify(path)} cannot be read: ${(error as NodeJS.ErrnoException).code}`,
    )
  }
}

function check(what: string, use: () => unknown): void {
  try {
    use()
  } catch (error) {
    throw new Error(`${what} cannot be used: ${(error as Error).message}; PEM files are accepted`)
  }
}
