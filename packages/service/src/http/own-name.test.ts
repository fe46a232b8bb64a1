import type { IncomingMessage } from "node:http"
import { expect, it } from "vitest"
import { requireOwnName } from "./own-name.ts"

const asked = (localAddress: string | undefined, host: string | undefined): (() => void) => {
  const request = { socket: { localAddress }, headers: { host } }
  return () => requireOwnName(request as unknown as IncomingMessage)
}

it.each([
  ["127.0.0.1", "localhost:8080"],
  ["127.0.0.1", "LOCALHOST"],
  ["127.0.0.1", "a.localhost"],
  ["127.0.0.1", "192.0.2.7"],
  ["::ffff:127.0.0.1", "127.0.0.1:8080"],
  ["::1", "[::1]:8080"],
  ["::1", "sluice"],
  ["127.0.0.1", undefined],
  ["192.0.2.7", "a.example"],
  [undefined, "a.example"],
])("requireOwnName accepts a request to %s with the Host %s", (address, host) => {
  expect(asked(address, host)).not.toThrow()
})

it.each([
  ["127.0.0.1", "a.example:8080"],
  ["::1", "localhost.a.example"],
  ["::ffff:127.0.0.1", "127.0.0.1.a.example"],
])("requireOwnName refuses a request to %s with the Host %s", (address, host) => {
  expect(asked(address, host)).toThrow("The header Host names another machine")
})
