import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ClientTable } from "./client-table.ts"

const names = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(
    "",
    "@shared",
    "0.0.0.0",
    "255.255.255.255",
    "01.2.3.4",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.256",
    "1..2.3",
  ),
  fc.constantFrom(
    "1.2.3.4 ",
    "a.b.c.dd",
    "1.2.3.",
    ".1.2.3",
    "1.2.3.4",
    "128.0.0.1",
    "\u00e4",
    "\ud83d\ude00",
  ),
  fc.string({ unit: "grapheme" }),
)

describe("ClientTable", () => {
  it("numbers clients from 0 in the order of their first use, and returns their names", () => {
    fc.assert(
      fc.property(fc.array(names, { maxLength: 200 }), (list) => {
        const table = new ClientTable()
        const numbers = list.map((client) => table.numberOf(client))
        const distinct = [...new Set(list)]
        expect(numbers).toEqual(list.map((client) => distinct.indexOf(client)))
        expect(distinct.map((_, number) => table.nameOf(number))).toEqual(distinct)
        expect(table.size).toBe(distinct.length)
      }),
      { numRuns: 300 },
    )
  })

  it("gives 200,000 addresses different numbers", () => {
    const table = new ClientTable()
    const address = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
    for (let i = 0; i < 200_000; i++) table.numberOf(address(i))
    expect(table.size).toBe(200_000)
    for (const i of [0, 1, 255, 256, 99_999, 199_999]) {
      expect(table.numberOf(address(i))).toBe(i)
      expect(table.nameOf(i)).toBe(address(i))
    }
  })
})
