import { expect } from "vitest"
import type { Block } from "./blocks.ts"
import { blocksOf } from "./documents.ts"

/**
 * Returns the blocks of a document whose comments name this test, in order. The test must use all of these blocks.
 * @throws Error when there are more or fewer than `count`
 */
export function blocksTestedBy(test: string, document: string, count: number): Block[] {
  const blocks = blocksOf(document).filter(({ testedBy }) => testedBy === test)
  if (blocks.length !== count)
    throw new Error(`${document} has ${blocks.length} blocks for ${test}, not ${count}`)
  return blocks
}

/**
 * Expects a string to equal the string in a document. "…" stands for anything within a line, and a line that contains
 * only "…" stands for any lines.
 */
export function expectShown(shown: string, actual: string): void {
  expect(actual.trim()).toMatch(patternOf(shown.trim()))
}

/** Expects a JSON value to equal the value in a document, where "…" in a string stands for anything. */
export function expectShownJson(shown: unknown, actual: unknown): void {
  const loosened = JSON.parse(JSON.stringify(shown), (_, value: unknown) =>
    typeof value === "string" && value.includes("…") ? expect.stringMatching(patternOf(value)) : value,
  )
  expect(actual).toEqual(loosened)
}

/** Returns the pattern of a string in which "…" stands for anything within a line, or alone in a line for any lines. */
function patternOf(shown: string): RegExp {
  const escaped = shown.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  const loosened = escaped.replace(/\n…$/, "(?:\n.*)*").replace(/^…\n/gm, "(?:.*\n)*")
  return new RegExp(`^${loosened.replaceAll("…", ".*")}$`)
}
