import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { drawDiagrams } from "./diagrams.ts"

// Draws the pictures of this folder again, and copies their descriptions into the documents that show them.

const root = new URL("../../", import.meta.url)
const documents = [
  "ARCHITECTURE.md",
  "README.md",
  ...readdirSync(new URL("docs", root), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !path.startsWith(".vitepress/"))
    .map((path) => `docs/${path}`),
]

for (const { file, description, svg } of await drawDiagrams()) {
  writeFileSync(new URL(file, import.meta.url), svg)
  console.log(`docs/pictures/${file}: ${description}`)
  const image = new RegExp(`!\\[[^\\]]*\\](?=\\([./\\w-]*pictures/${file.replaceAll(".", "\\.")}\\))`, "g")
  for (const document of documents) {
    const text = readFileSync(new URL(document, root), "utf8")
    const current = text.replace(image, () => `![${description}]`)
    if (current !== text) writeFileSync(new URL(document, root), current)
  }
}
