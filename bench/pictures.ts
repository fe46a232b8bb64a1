import { writeFileSync } from "node:fs"
import { drawPictures } from "./algorithms/pictures.ts"

// Draws the pictures in docs/guides/choosing.md again. A test compares them with the files.

for (const { file, svg, words } of await drawPictures()) {
  writeFileSync(new URL(`../docs/guides/pictures/${file}`, import.meta.url), svg)
  console.log(`${file}: ${words}`)
}
