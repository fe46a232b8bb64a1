import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext } from "node:tls"
import type { Tls } from "../sockets/tls.ts"
import type { Log } from "./log.ts"
import type { Settings } from "./settings/settings-table.ts"

type TlsFiles = Pick<Settings, "tlsCert" | "tlsKey" | "tlsClientCa">

/**
 * Reads the TLS files. Returns undefined if the settings name no TLS files. Throws an Error with the name of a file
 * that cannot be used.
 */
export function readTls({ tlsCert, tlsKey, tlsClientCa }: TlsFiles): Tls | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const cert = read("--tls-cert", tlsCert)
  const key = read("--tls-key", tlsKey)
  const clientCa = tlsClientCa === undefined ? undefined : read("--tls-client-ca", tlsClientCa)
  const given = `--tls-cert ${JSON.stringify(tlsCert)}`
  const givenKey = `--tls-key ${JSON.stringify(tlsKey)}`
  check(given, "a certificate as PEM", () => createSecureContext({ cert }))
  // Check for encryption here, because the service cannot ask for a passphrase, and OpenSSL's own message is only
  // "bad decrypt".
  if (key.includes("ENCRYPTED"))
    throw new Error(`${givenKey} is encrypted; accepted: a key without a passphrase`)
  check(givenKey, "a private key as PEM", () => createSecureContext({ key }))
  check(`${given} with ${givenKey}`, "a certificate, first in its file, and its own key", () =>
    createSecureContext({ cert, key }),
  )
  // Parse the authority, because a secure context accepts any bytes as an authority, even if no certificate could
  // match.
  if (clientCa !== undefined)
    check(
      `--tls-client-ca ${JSON.stringify(tlsClientCa)}`,
      "a certificate as PEM",
      () => new X509Certificate(clientCa),
    )
  return { cert, key, clientCa }
}

/** Warns of certificates that have expired or are not valid yet. The service runs, but callers cannot connect. */
export function warnOfDates(files: TlsFiles, { cert, clientCa }: Tls, log: Pick<Log, "warn">): void {
  const warn = (flag: string, file: string | undefined, bytes: Buffer, refused: string): void => {
    const { validFrom, validTo } = new X509Certificate(bytes)
    const now = Date.now()
    if (Date.parse(validFrom) <= now && now <= Date.parse(validTo)) return
    log.warn(
      { file, validFrom, validTo },
      `The certificate of ${flag} has expired or is not valid yet, so ${refused}. Replace it.`,
    )
  }
  warn("--tls-cert", files.tlsCert, cert, "callers refuse it")
  if (clientCa !== undefined)
    warn("--tls-client-ca", files.tlsClientCa, clientCa, "callers with its certificates are refused")
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

function check(what: string, accepted: string, use: () => unknown): void {
  try {
    use()
  } catch (error) {
    throw new Error(`${what} cannot be used: ${(error as Error).message}; accepted: ${accepted}`)
  }
}
