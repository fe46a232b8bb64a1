import { expect, it } from "vitest"
import { RoundTrips } from "./round-trips.ts"

it("recent round trips are the last 64, and the list is empty before the first", () => {
  const roundTrips = new RoundTrips()
  expect(roundTrips.recent).toEqual([])
  roundTrips.add(7)
  expect(roundTrips.recent).toEqual([7])
  for (let ms = 1; ms <= 100; ms++) roundTrips.add(ms)
  expect([...roundTrips.recent].sort((one, other) => one - other)).toEqual(
    Array.from({ length: 64 }, (_, i) => 37 + i),
  )
})
