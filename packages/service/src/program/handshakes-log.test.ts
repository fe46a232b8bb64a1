import { expect, it } from "vitest"
import { logFailedHandshakes } from "./handshakes-log.ts"

it("writes one line a minute for each reason, with whom it was first", () => {
  let nowMs = 0
  const lines: unknown[] = []
  const failed = logFailedHandshakes({ warn: (fields: unknown) => void lines.push(fields) }, () => nowMs)
  for (const [at, reason, peer] of [
    [0, "ERR_SSL_HTTP_REQUEST", "10.0.0.1"],
    [59_999, "ERR_SSL_HTTP_REQUEST", "10.0.0.2"],
    [59_999, "CERT_HAS_EXPIRED", undefined],
    [60_000, "ERR_SSL_HTTP_REQUEST", "10.0.0.3"],
    [119_998, "CERT_HAS_EXPIRED", undefined],
  ] as const) {
    nowMs = at
    failed(reason, peer)
  }
  expect(lines).toEqual([
    { reason: "ERR_SSL_HTTP_REQUEST", peer: "10.0.0.1" },
    { reason: "CERT_HAS_EXPIRED", peer: undefined },
    { reason: "ERR_SSL_HTTP_REQUEST", peer: "10.0.0.3" },
  ])
})
