import { expect, it } from "vitest"
import { placesIn } from "./text-places.ts"

const placed = (text: string, path: readonly (string | number)[], index = 0) =>
  placesIn(text)[index]?.placeOf(path)

it.each([
  ["a: 1", ["a"], [1, 1]],
  ["a:\n  b: 1", ["a", "b"], [2, 3]],
  ["a: [x, {b: 1}]", ["a", 1, "b"], [1, 9]],
  ["a: 1", ["b"], [1, 1]],
  ["a: 1", ["a", "b"], [1, 1]],
  ["a: 1", ["a", 0], [1, 1]],
  ["a:", ["a", "b"], [1, 1]],
  ["{a}", ["a", "b"], [1, 2]],
  ['"x.y":\n  "p[0]": 1', ["x.y", "p[0]"], [2, 3]],
  ["? [1, 2]\n: 3\nb: 1", ["b"], [3, 1]],
  ["? [1, 2]\n: 3", ["c"], [1, 1]],
  ["~: 3", [""], [1, 1]],
  ["a: &one {b: 1}\nc: *one", ["c", "b"], [1, 10]],
  ["a: &one\n  b: 1\n---\n# of another document\nc: *one", [], [1, 1]],
])("placesIn(%j) finds the path %j at %j", (text, path, [line, column]) => {
  expect(placed(text, path)).toEqual({ line, column })
})

it("placesIn finds no values in an empty text, and one value for each item of an array", () => {
  expect(placesIn("")).toEqual([])
  expect(placesIn("---\n---\n~")).toEqual([])
  expect(placed("- a: 1\n- b: 1", ["b"], 1)).toEqual({ line: 2, column: 3 })
  expect(placed("-\n- b: 1", ["b"], 0)).toEqual({ line: 1, column: 2 })
  expect(placed("text", ["a"])).toEqual({ line: 1, column: 1 })
})
