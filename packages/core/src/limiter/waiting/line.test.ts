import { expect, it } from "vitest"
import { Line, type Standing } from "./line.ts"

it("lets as many ask at once as it likes until one had to wait, then one, then one more for each that is granted", () => {
  const line = new Line<Standing>("a")
  line.asking = 100_000
  expect(line.hasWindow).toBe(true)
  line.narrow()
  line.asking = 1
  expect(line.hasWindow).toBe(false)
  line.granted()
  expect(line.hasWindow).toBe(true)
  line.asking = 2
  expect(line.hasWindow).toBe(false)
})

it("lets no more ask at once than travel to Redis in one call, once one had to wait", () => {
  const line = new Line<Standing>("a")
  line.narrow()
  for (let i = 0; i < 100; i++) line.granted()
  line.asking = 63
  expect(line.hasWindow).toBe(true)
  line.asking = 64
  expect(line.hasWindow).toBe(false)
})
