import type { Policy } from "@sluice/core/stores"

/** Ten units in a minute that begins with the first request. */
export const FIRST_HIT: Policy = {
  name: "login",
  counter: "counter0",
  algorithm: "fixed-window",
  limit: 10,
  windowMs: 60_000,
  align: "first-hit",
}
