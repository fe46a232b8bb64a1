import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { importProducts } from "./importer.ts"
import { createSupplier, type Usage } from "./supplier.ts"

let supplier: Served
beforeEach(async () => {
  supplier = await serve(createSupplier())
})
afterEach(() => supplier.close())

describe("in the example of two services,", () => {
  it("the importer uses at least 75 % of the limit, with at most 1 % of its calls refused", async () => {
    const products = await importProducts(supplier.url, 150)
    expect(products.map(({ id }) => id)).toEqual(Array.from({ length: 150 }, (_, at) => at + 1))
    const { admitted, refused, possible } = (await (await fetch(`${supplier.url}/usage`)).json()) as Usage
    expect(admitted).toBe(150)
    expect(refused).toBeLessThanOrEqual(2)
    expect(admitted / possible).toBeGreaterThanOrEqual(0.75)
  })

  it("without the paced fetch, the supplier refuses a call", async () => {
    const { url, close } = await serve(createSupplier({ clock: manualClock() }))
    onTestFinished(close)
    const plain = (url: string) => fetch(url)
    await expect(importProducts(url, 100, plain as never)).rejects.toThrow("responded with 429")
  })
})
