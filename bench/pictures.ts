import { writeFileSync } from "node:fs"
import { drawPictures } from "./algorithms/pictures.ts"

// Draws the pictures in docs/rules/algorithms.md again. A test compares them with the files.

for (const { file, svg, words } of await drawPictures()) {
  writeFileSync(new URL(`../docs/pictures/charts/${file}`, import.meta.url), svg)
  console.log(`${file}: ${words}`)
}
