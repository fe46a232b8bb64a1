import { createPrivateKey } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Tls } from "../sockets/tls.ts"
import { readTls, warnOfDates } from "./tls.ts"

const pem = (name: string): string =>
  fileURLToPath(new URL(`../../../../test/fixtures/tls/${name}`, import.meta.url))
const [cert, key, clientCa] = [pem("server.pem"), pem("server.key"), undefined]

let encrypted: string
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-tls-"))
  encrypted = join(folder, "encrypted.key")
  const hidden = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "hidden" } as const
  writeFileSync(encrypted, createPrivateKey(readFileSync(key)).export(hidden))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe("TLS files that cannot be used", () => {
  const errorOf = (files: Parameters<typeof readTls>[0]): string => {
    try {
      readTls(files)
    } catch (error) {
      return (error as Error).message
    }
    return "they can"
  }

  it("are named in an error with the reason", () => {
    expect(errorOf({ tlsCert: cert, tlsKey: key, tlsClientCa: clientCa })).toBe("they can")
    expect(errorOf({ tlsCert: key, tlsKey: cert, tlsClientCa: clientCa })).toMatch(
      /^--tls-cert ".*server.key" cannot be used: .*no start line; accepted: a certificate as PEM$/,
    )
    expect(errorOf({ tlsCert: cert, tlsKey: cert, tlsClientCa: clientCa })).toMatch(
      /^--tls-key ".*server.pem" cannot be used: .*; accepted: a private key as PEM$/,
    )
    expect(errorOf({ tlsCert: cert, tlsKey: pem("client.key"), tlsClientCa: clientCa })).toMatch(
      /^--tls-cert ".*" with --tls-key ".*client.key" cannot be used: .*key values mismatch; accepted: a certificate, first in its file, and its own key$/,
    )
    expect(errorOf({ tlsCert: cert, tlsKey: encrypted, tlsClientCa: clientCa })).toMatch(
      /^--tls-key ".*" is encrypted; accepted: a key without a passphrase$/,
    )
    expect(errorOf({ tlsCert: cert, tlsKey: key, tlsClientCa: key })).toMatch(
      /^--tls-client-ca ".*" cannot be used: /,
    )
  })
})

it("warnOfDates warns only of certificates that have expired or are not valid yet", () => {
  const expired = pem("expired.pem")
  const said: unknown[] = []
  const log = { warn: (fields: object, msg: string) => void said.push({ ...fields, msg }) }
  for (const files of [
    { tlsCert: cert, tlsKey: key, tlsClientCa: pem("ca.pem") },
    { tlsCert: expired, tlsKey: key, tlsClientCa: expired },
  ]) {
    warnOfDates(files, readTls(files) as Tls, log as never)
  }
  const dates = { file: expired, validFrom: "Jan  1 00:00:00 2020 GMT", validTo: "Jan  1 00:00:00 2021 GMT" }
  expect(said).toEqual([
    {
      ...dates,
      msg: "The certificate of --tls-cert has expired or is not valid yet, so callers refuse it. Replace it.",
    },
    {
      ...dates,
      msg: "The certificate of --tls-client-ca has expired or is not valid yet, so callers with its certificates are refused. Replace it.",
    },
  ])
})
