import { createHash } from "node:crypto"
import { globSync } from "tinyglobby"
import { findDocuments, ROOT } from "../docs/documents.ts"
import { type Kind, type Sentence, sentencesOf } from "./sentences.ts"
import { sourcePaths, testPaths, textOf } from "./sources.ts"

/** Number of sentences of each kind in a draw. */
const DRAWN: Readonly<Record<Kind, number>> = { code: 100, documents: 70, titles: 30 }

const [first = "1", folder = ""] = process.argv.slice(2)
const documents = findDocuments().filter((path) => !path.startsWith("docs/reference/api/"))
const others = globSync(["bench/**/*.ts", "examples/**/*.ts"], { cwd: ROOT, ignore: ["**/node_modules/**"] })
const paths = [...new Set([...sourcePaths(), ...testPaths(), ...others, ...documents])]

const lines: string[] = []
if (first === "--in") {
  for (const path of paths.filter((one) => one === folder || one.startsWith(`${folder}/`))) {
    lines.push(...sentencesOf(path, textOf(path)).map(({ place, text }) => `${place} ${text}`))
  }
} else {
  const all = paths.flatMap((path) => sentencesOf(path, textOf(path)))
  // The draw contains the sentences with the smallest digests of seed and sentence, so nobody chooses a sentence.
  const digest = ({ place, text }: Sentence): string =>
    createHash("sha256").update(`${first} ${place} ${text}`).digest("hex")
  for (const [kind, count] of Object.entries(DRAWN) as [Kind, number][]) {
    const some = all.filter((one) => one.kind === kind).map((one) => ({ ...one, digest: digest(one) }))
    some.sort((one, other) => (one.digest < other.digest ? -1 : 1))
    lines.push(`\n${kind}: ${count} of ${some.length}`)
    lines.push(...some.slice(0, count).map(({ place, text }, at) => `${at + 1}. ${text}  [${place}]`))
  }
}
console.log(lines.join("\n"))
