import { paced } from "@sluice/client"
import type { Usage } from "./supplier.ts"

/** A product of the supplier. */
export interface Product {
  readonly id: number
}

/** Number of calls at the same time. */
const WORKERS = 10

/**
 * Reads the products 1 to `count` of a supplier, as fast as its limit allows. Rejects if the supplier refuses a call.
 */
export async function importProducts(url: string, count: number, api = paced(fetch)): Promise<Product[]> {
  const products: Product[] = []
  let begun = 0
  async function work(): Promise<void> {
    while (begun < count) {
      const id = ++begun
      const response = await api(`${url}/products/${id}`)
      if (!response.ok) throw new Error(`The supplier responded with ${response.status} for product ${id}.`)
      products[id - 1] = (await response.json()) as Product
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, work))
  return products
}

if (process.argv[1] === import.meta.filename) {
  const url = process.env.SUPPLIER ?? "http://localhost:3000"
  const products = await importProducts(url, 500)
  const usage = (await (await fetch(`${url}/usage`)).json()) as Usage
  const used = Math.round((100 * usage.admitted) / usage.possible)
  console.log(`${products.length} products, ${usage.refused} calls refused, ${used} % of the limit used`)
}
