import { describe, expect, it, onTestFinished } from "vitest"
import type { EnvoyAsking } from "./envoy-asking.ts"
import { startEnvoy } from "./envoy-started.ts"
import { TWO_SERVICES } from "./started.ts"
import { openStranger } from "./stranger.ts"

const overalls = async (envoy: EnvoyAsking, times: number, ...asked: Parameters<EnvoyAsking["ask"]>) => {
  const answers: string[] = []
  for (let time = 0; time < times; time++) answers.push((await envoy.ask(...asked)).overall)
  return answers.join(" ")
}

describe("the contract's two items, over Envoy's protocol", () => {
  it("are counted together with ShouldForwardRequest", async () => {
    const { envoy, started } = await startEnvoy(TWO_SERVICES)
    const gateway = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
    onTestFinished(() => gateway.close())
    const forward = async (service_id: number, request: object) => {
      const called = await gateway.call("ShouldForwardRequest", {
        service_id,
        request: JSON.stringify(request),
      })
      return "value" in called && called.value.should_forward
    }

    expect(await overalls(envoy, 3, "1", [{ user_id: "ada" }])).toBe("OK OK OK")
    expect(await forward(1, { user_id: "ada" })).toBe(true)
    expect(await forward(1, { user_id: "ada" })).toBe(true)
    expect(await overalls(envoy, 1, "1", [{ user_id: "ada" }])).toBe("OVER_LIMIT")
    expect(await forward(1, { user_id: "ada" })).toBe(false)
    expect(await overalls(envoy, 1, "1", [{ user_id: "bob" }])).toBe("OK")

    expect(await overalls(envoy, 6, "2", [{ generic_key: "anything" }])).toBe("OK OK OK OK OK OK")
    for (let asked = 0; asked < 4; asked++) expect(await forward(2, {})).toBe(true)
    expect(await overalls(envoy, 1, "2", [{ generic_key: "anything" }])).toBe("OVER_LIMIT")
  })
})

const SHOP = `
service_id: shop
rules:
  - { name: per-ip, field: ip, rate: { requests_per_unit: 2, unit: minute } }
  - { name: per-user, field: user_id, rate: { requests_per_unit: 3, unit: minute } }
  - name: checkout
    field: generic_key
    match: { fields: { generic_key: [checkout] } }
    rate: { requests_per_unit: 1, unit: hour }
  - name: writes
    field: [tenant, method]
    match: { methods: [POST], path: /orders/* }
    rate: { requests_per_unit: 1, unit: hour }
  - { name: per-key, field: "header:x-api-key", rate: { requests_per_unit: 1, unit: hour } }
`

describe("descriptors", () => {
  it("are decided independently, and answered in order", async () => {
    const { envoy } = await startEnvoy(SHOP)
    const asked = [{ user_id: "ada" }, { unknown: "x" }, { remote_address: "192.0.2.1" }]
    expect((await envoy.ask("shop", asked)).statuses).toEqual([
      "OK per-user 3/MINUTE 2 left 61 s",
      "OK",
      "OK per-ip 2/MINUTE 1 left 61 s",
    ])
    await envoy.ask("shop", [asked[2] ?? {}])
    expect(await overalls(envoy, 1, "shop", [{ remote_address: "192.0.2.2" }, { ip: "192.0.2.3" }])).toBe(
      "OK",
    )
    const refused = await envoy.ask("shop", asked)
    expect(refused.overall).toBe("OVER_LIMIT")
    expect(refused.statuses).toEqual([
      "OK per-user 3/MINUTE 2 left 91 s",
      "OK",
      "OVER_LIMIT per-ip 2/MINUTE 0 left 61 s",
    ])
  })

  it("match a rule only if they contain all of its fields", async () => {
    const { envoy } = await startEnvoy(SHOP)
    const order = { tenant: "t1", method: "POST", path: "/orders/7" }
    expect((await envoy.ask("shop", [order])).statuses).toEqual(["OK writes 1/HOUR 0 left 3601 s"])
    expect(await overalls(envoy, 1, "shop", [{ ...order, method: "GET" }])).toBe("OK")
    expect(await overalls(envoy, 1, "shop", [{ ...order, path: "/carts/7" }])).toBe("OK")
    // The values must be in one descriptor.
    expect(
      (await envoy.ask("shop", [{ tenant: "t1" }, { method: "POST", path: "/orders/7" }])).statuses,
    ).toEqual(["OK", "OK"])
    expect(await overalls(envoy, 1, "shop", [order])).toBe("OVER_LIMIT")
  })

  it("name fields by their keys, such as generic_key or header:x-api-key", async () => {
    const { envoy } = await startEnvoy(SHOP)
    expect(await overalls(envoy, 2, "shop", [{ generic_key: "browse" }])).toBe("OK OK")
    expect(await overalls(envoy, 2, "shop", [{ generic_key: "checkout" }])).toBe("OK OVER_LIMIT")
    expect(await overalls(envoy, 2, "shop", [{ "header:X-API-Key": "k1" }])).toBe("OK OVER_LIMIT")
    expect(await overalls(envoy, 1, "shop", [{ "header:x-api-key": "k2" }])).toBe("OK")
    expect(
      await overalls(envoy, 5, "shop", [{ __proto__x: "k", constructor: "c", "header:__proto__": "p" }]),
    ).toBe("OK OK OK OK OK")
  })

  it("use the first of several entries with the same key", async () => {
    const { envoy } = await startEnvoy(SHOP)
    const twice = (first: string, second: string) => ({
      entries: [
        { key: "user_id", value: first },
        { key: "user_id", value: second },
      ],
    })
    expect(await overalls(envoy, 4, "shop", [twice("ada", "bob")])).toBe("OK OK OK OVER_LIMIT")
    expect(await overalls(envoy, 1, "shop", [{ user_id: "ada" }])).toBe("OVER_LIMIT")
    expect(await overalls(envoy, 1, "shop", [{ user_id: "bob" }])).toBe("OK")
  })

  it("with an empty value count as descriptors without the field, but cannot bypass a rule", async () => {
    const { envoy } = await startEnvoy(SHOP)
    expect(await overalls(envoy, 4, "shop", [{ user_id: "" }])).toBe("OK OK OK OVER_LIMIT")
  })
})

describe("a request that is refused", () => {
  it("takes no units, because the units of its other descriptors are refunded", async () => {
    const { envoy, clock } = await startEnvoy(SHOP)
    const both = [{ user_id: "ada" }, { remote_address: "192.0.2.1" }]
    expect(await overalls(envoy, 20, "shop", both)).toBe(`OK OK${" OVER_LIMIT".repeat(18)}`)
    expect((await envoy.ask("shop", [{ user_id: "ada" }])).statuses).toEqual([
      "OK per-user 3/MINUTE 0 left 101 s",
    ])
    clock.advance(61_000)
    expect(await overalls(envoy, 1, "shop", [{ remote_address: "192.0.2.1" }])).toBe("OK")
  })

  it("takes no units from rules without a field, whose refusal applies to all descriptors", async () => {
    const { envoy } = await startEnvoy(`
service_id: whole
rules:
  - { name: all, rate: { requests_per_unit: 3, unit: day } }
  - { name: per-user, field: user_id, rate: { requests_per_unit: 2, unit: day } }
`)
    const asked = [{ tenant: "t1" }, { user_id: "ada" }]
    expect((await envoy.ask("whole", asked)).statuses).toEqual([
      "OK all 3/DAY 2 left 86401 s",
      "OK per-user 2/DAY 1 left 86401 s",
    ])
    expect(await overalls(envoy, 3, "whole", asked)).toBe("OK OVER_LIMIT OVER_LIMIT")
    expect((await envoy.ask("whole", [{ tenant: "t1" }, { user_id: "bob" }])).statuses).toEqual([
      "OK all 3/DAY 0 left 144001 s",
      "OK per-user 2/DAY 1 left 86401 s",
    ])
    const refused = await envoy.ask("whole", [{ tenant: "t1" }, { user_id: "bob" }])
    expect(refused.overall).toBe("OVER_LIMIT")
    expect(refused.statuses).toEqual([
      "OVER_LIMIT all 3/DAY 0 left 86401 s",
      // One unit is left, because this request was refunded. The reset time is the same as in the earlier response.
      "OK per-user 2/DAY 1 left 129601 s",
    ])
  })
})

describe("rules without a field", () => {
  it("count a request once, and match the entries of any descriptor", async () => {
    const { envoy } = await startEnvoy(`
service_id: whole
rules:
  - { name: all, rate: { requests_per_unit: 4, unit: day } }
  - { name: free, match: { fields: { plan: [free] } }, rate: { requests_per_unit: 2, unit: day } }
`)
    const free = [{ user_id: "ada" }, { plan: "free" }, { remote_address: "192.0.2.1" }]
    expect(await overalls(envoy, 3, "whole", free)).toBe("OK OK OVER_LIMIT")
    expect(await overalls(envoy, 3, "whole", [{ plan: "paid" }])).toBe("OK OK OVER_LIMIT")
  })

  it("count a request once, whatever the names of its keys", async () => {
    const { envoy } = await startEnvoy(
      "{ service_id: whole, rules: [{ name: all, rate: { requests_per_unit: 3, unit: day } }] }",
    )
    expect(await overalls(envoy, 2, "whole", [{ service: "a" }, { service: "b" }])).toBe("OK OK")
    expect(await overalls(envoy, 2, "whole", [{ service: "a" }])).toBe("OK OVER_LIMIT")
  })

  it("use the request's hits, even if its descriptors contain other hits", async () => {
    const { envoy } = await startEnvoy(`
service_id: whole
rules:
  - { name: all, algorithm: fixed-window, rate: { requests_per_unit: 5, unit: day } }
  - { name: per-user, field: user_id, algorithm: fixed-window, rate: { requests_per_unit: 9, unit: day } }
`)
    const own = { entries: [{ key: "user_id", value: "ada" }], hits_addend: { value: 7 } }
    expect((await envoy.ask("whole", [own], 2)).statuses).toEqual(["OK per-user 9/DAY 2 left 86400 s"])
    expect((await envoy.ask("whole", [{ tenant: "t1" }], 2)).statuses).toEqual([
      "OK all 5/DAY 1 left 86400 s",
    ])
  })

  it("are decided together with the rules of a single descriptor", async () => {
    const { envoy } = await startEnvoy(`
service_id: whole
rules:
  - { name: all, rate: { requests_per_unit: 5, unit: day } }
  - { name: per-user, field: user_id, rate: { requests_per_unit: 9, unit: day } }
`)
    const policies = async (...asked: Parameters<EnvoyAsking["ask"]>) =>
      (await envoy.ask(...asked)).headers["RateLimit-Policy"]
    expect(await policies("whole", [{ user_id: "ada" }])).toBe('"all";q=5;w=86400, "per-user";q=9;w=86400')
    expect(await policies("whole", [{ user_id: "ada" }, { tenant: "t1" }])).toBe('"all";q=5;w=86400')
  })
})
