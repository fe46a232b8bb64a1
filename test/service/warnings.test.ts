import { expect, it } from "vitest"
import { openEnvoy } from "./envoy-asking.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { openService } from "./started.ts"

const RULES = `
- service_id: shop
  rules: { name: per-ip, field: ip, limit: 9, window: 1 day }
- service_id: bank
  rules: { name: per-ip, field: ip, limit: 9, window: 1 day }
`

it("a warning of a service's limiter names the service and explains what the caller should send", async () => {
  const said: unknown[] = []
  const say = (fields: object, message: string): void => void said.push({ ...fields, message })
  const started = await openService(RULES, { shared: { logger: { warn: say, error: say } } })
  const envoy = openEnvoy(started.grpc)
  // Send an invalid address twice, which is logged once.
  for (const domain of ["shop", "shop", "bank"]) await envoy.ask(domain, [{ remote_address: "" }])
  const message = expect.stringMatching(
    /^A caller sent no client address: send "ip" in "request", or from Envoy/,
  )
  const code = "SLUICE_ADDRESS_UNKNOWN"
  expect(said).toEqual([
    { code, service: "shop", message },
    { code, service: "bank", message },
  ])
  envoy.close()
})

it("a caller that does not reserve takes no permits, and each service warns once that its rule does not apply", async () => {
  const said: unknown[] = []
  const say = (fields: object, message: string): void => void said.push({ ...fields, message })
  const rules = "rules: { name: one, field: user_id, concurrent: 1 }"
  const started = await openService(`[{ service_id: shop, ${rules} }, { service_id: bank, ${rules} }]`, {
    shared: { logger: { warn: say, error: say } },
  })
  const envoy = openEnvoy(started.grpc)
  const ask = async (service: string, more = {}) =>
    (await post(started, FORWARD, { service, request: { user_id: "ada" }, ...more })).body
  for (let times = 0; times < 2; times++) {
    expect(await ask("shop")).toMatchObject({ shouldForward: true, policy: "", reservation: "" })
    expect((await envoy.ask("bank", [{ user_id: "ada" }])).overall).toBe("OK")
  }
  const check = await fetch(`${started.http}/check/shop`, { headers: { "x-forwarded-uri": "/" } })
  expect(check.headers.get("ratelimit-policy")).toBeNull()
  const message =
    'Rule "one" has "concurrent", but nobody says when a request has ended. So such rules only apply to requests with ' +
    '"reserve": true, whose reservations the caller settles. (@sluice/core/errors/sluice_cannot_release.md)'
  const code = "SLUICE_CANNOT_RELEASE"
  expect(said).toEqual([
    { code, service: "shop", message },
    { code, service: "bank", message },
  ])
  expect(await ask("shop", { reserve: true })).toMatchObject({ shouldForward: true, policy: "one" })
  expect(await ask("shop", { reserve: true })).toMatchObject({ shouldForward: false, policy: "one" })
  envoy.close()
})
