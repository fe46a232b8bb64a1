import { readFileSync, writeFileSync } from "node:fs"
import { drawDiagrams } from "./diagrams.ts"

// Draws the pictures of this folder again, and copies their descriptions into the document that shows them.

const document = new URL("../../ARCHITECTURE.md", import.meta.url)
let words = readFileSync(document, "utf8")
for (const { file, description, svg } of drawDiagrams()) {
  writeFileSync(new URL(file, import.meta.url), svg)
  const link = `](docs/pictures/${file})`
  const end = words.indexOf(link)
  if (end !== -1) words = `${words.slice(0, words.lastIndexOf("![", end))}![${description}${words.slice(end)}`
  console.log(`docs/pictures/${file}: ${description}`)
}
writeFileSync(document, words)
