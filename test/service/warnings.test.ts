import { expect, it } from "vitest"
import { openEnvoy } from "./envoy-asking.ts"
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
