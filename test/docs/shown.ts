import { expect } from "vitest"
import type { Block } from "./blocks.ts"
import { blocksOf } from "./documents.ts"

/**
 * The blocks of a document that say that this test runs them, in order; all of them have to be asked for.
 * @throws Error where there are others than so many
 */
export function blocksTestedBy(test: string, document: string, count: number): Block[] {
  const blocks = blocksOf(document).filter(({ testedBy }) => testedBy === test)
  if (blocks.length !== count)
    throw new Error(`${document} has ${blocks.length} blocks for ${test}, not ${count}`)
  return blocks
}

/** Expects a text to be the one that a document shows, where "…" stands for anything within a line. */
export function expectShown(shown: string, actual: string): void {
  expect(actual.trim()).toMatch(patternOf(shown.trim()))
}

/** Expects a value of JSON to be the one that a document shows, where "…" in a text stands for anything. */
export function expectShownJson(shown: unknown, actual: unknown): void {
  const loosened = JSON.parse(JSON.stringify(shown), (_, value: unknown) =>
    typeof value === "string" && value.includes("…") ? expect.stringMatching(patternOf(value)) : value,
  )
  expect(actual).toEqual(loosened)
}

/** Of a text in which "…" stands for anything within a line. */
function patternOf(shown: string): RegExp {
  const parts = shown.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(`^${parts.join(".*")}$`)
}
