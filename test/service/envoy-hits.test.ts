import { describe, expect, it } from "vitest"
import { startEnvoy } from "./envoy-started.ts"

const rule = (more: string) => `
service_id: shop
rules:
  - { name: r, field: user_id, algorithm: fixed-window, ${more} }
`
const ADA = [{ user_id: "ada" }]

describe("hits", () => {
  const asked = (hits: number) => ({
    entries: [{ key: "user_id", value: "ada" }],
    hits_addend: { value: hits },
  })

  it("set the cost of a request, which is one by default", async () => {
    const { envoy } = await startEnvoy(rule("limit: 10, window: 1 hour"))
    expect((await envoy.ask("shop", ADA, 4)).statuses).toEqual(["OK r 10/HOUR 6 left 3600 s"])
    expect((await envoy.ask("shop", ADA, 0)).statuses).toEqual(["OK r 10/HOUR 5 left 3600 s"])
    expect((await envoy.ask("shop", ADA, 6)).statuses).toEqual(["OVER_LIMIT r 10/HOUR 5 left 3600 s"])
  })

  it("in a descriptor replace the hits of the request", async () => {
    const { envoy } = await startEnvoy(rule("limit: 10, window: 1 hour"))
    expect((await envoy.ask("shop", [asked(3), ...ADA], 5)).statuses).toEqual([
      "OK r 10/HOUR 7 left 3600 s",
      "OK r 10/HOUR 2 left 3600 s",
    ])
  })

  it("with the value 0 take no units, but check whether a unit remains", async () => {
    const { envoy } = await startEnvoy(rule("limit: 2, window: 1 hour"))
    for (let time = 0; time < 5; time++) expect((await envoy.ask("shop", [asked(0)])).overall).toBe("OK")
    await envoy.ask("shop", ADA, 2)
    const refused = await envoy.ask("shop", [asked(0)])
    expect(refused.statuses).toEqual(["OVER_LIMIT r 2/HOUR 0 left 3600 s"])
    expect(refused.headers).toEqual({ "Retry-After": "3600" })
    expect(refused.body).toBe("")
  })

  it("above every limit are always refused, without an error", async () => {
    const { envoy } = await startEnvoy(rule("limit: 10, window: 1 hour"))
    const most = await envoy.call({
      domain: "shop",
      descriptors: [
        { entries: [{ key: "user_id", value: "ada" }], hits_addend: { value: "18446744073709551615" } },
      ],
    })
    expect(most).toMatchObject({ value: { overall_code: "OVER_LIMIT" } })
    const refused = await envoy.ask("shop", ADA, 4_294_967_295)
    expect(refused.statuses).toEqual(["OVER_LIMIT r 10/HOUR 0 left 0 s"])
    expect(refused.headers["Retry-After"]).toBeUndefined()
    expect((await envoy.ask("shop", ADA)).statuses).toEqual(["OK r 10/HOUR 9 left 3600 s"])
  })

  it("that Envoy reports after the response are charged above the limit if refusals count", async () => {
    const { envoy } = await startEnvoy(rule("limit: 10, window: 1 hour, count_rejected: true"))
    await envoy.ask("shop", ADA, 8)
    expect((await envoy.ask("shop", [asked(0)])).overall).toBe("OK")
    await envoy.ask("shop", ADA, 5)
    expect((await envoy.ask("shop", [asked(0)])).overall).toBe("OVER_LIMIT")
  })
})
