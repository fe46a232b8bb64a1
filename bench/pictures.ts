import { writeFileSync } from "node:fs"
import { drawPictures } from "./algorithms/pictures.ts"

// Redraws the pictures in docs/rules/algorithms.md. A test compares the drawings with the files.

for (const { file, svg, words } of await drawPictures()) {
  writeFileSync(new URL(`../docs/pictures/charts/${file}`, import.meta.url), svg)
  console.log(`${file}: ${words}`)
}
