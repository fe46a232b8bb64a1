import { writeFileSync } from "node:fs"
import { drawPictures } from "./algorithms/pictures.ts"

// Draws the pictures of docs/guides/choosing.md anew; a test compares them with what is there.

for (const { file, svg, words } of await drawPictures()) {
  writeFileSync(new URL(`../docs/guides/pictures/${file}`, import.meta.url), svg)
  console.log(`${file}: ${words}`)
}
