import { readdirSync } from "node:fs"
import { countDocuments } from "./documents.ts"
import { type Entry, functions, imports, inheritance } from "./lists.ts"
import { DEEP, LONG, MANY, reasonOf } from "./reasons.ts"
import { codeLines, parse, sourcePaths, testPaths, textOf } from "./sources.ts"

/** The packages that contain the code of the original core, which was divided. */
const CORE_OF_OLD = ["core", "redis", "scale", "rules", "dynamodb", "otel", "recording"]
/** Number of printed entries of a list, unless more entries need a reason. */
const SHOWN = 15

const paths = sourcePaths()
const linesOf = (files: readonly string[]) => files.reduce((sum, path) => sum + codeLines(textOf(path)), 0)
const below = (folder: string) => paths.filter((path) => path.startsWith(`${folder}/`))
const row = (name: string, files: readonly string[]) =>
  console.log(
    `${String(linesOf(files)).padStart(7)} lines ${String(files.length).padStart(4)} files  ${name}`,
  )
const heading = (text: string) => console.log(`\n${text}`)

/** Prints the first entries of a list, and all entries that need a reason. */
function list(title: string, entries: readonly Entry[], limit: number): void {
  heading(`${title} (more than ${limit} need a reason)`)
  for (const { place, count } of entries.filter((entry, at) => at < SHOWN || entry.count > limit)) {
    const reason = reasonOf(place)
    console.log(`${String(count).padStart(7)}  ${place}${reason === undefined ? "" : `: ${reason}`}`)
  }
}

heading("Lines of code, without comments and blank lines")
const packages = readdirSync(new URL("../../packages", import.meta.url))
for (const name of packages) row(`packages/${name}`, below(`packages/${name}`))
heading("Rooms of the core")
for (const room of [...new Set(below("packages/core").map((path) => path.split("/")[3] as string))].sort()) {
  const isFile = room.endsWith(".ts")
  if (!isFile) row(room, below(`packages/core/src/${room}`))
}
heading("In all")
row(
  "core, redis, scale, rules, dynamodb, otel and recording",
  CORE_OF_OLD.flatMap((name) => below(`packages/${name}`)),
)
row("all packages", paths)
row("tests", testPaths())
console.log(
  `${(linesOf(testPaths()) / linesOf(paths)).toFixed(2).padStart(7)} lines of tests for each line of sources`,
)
const boxes = new Set(below("packages/core/src/limiter").map((path) => path.split("/")[4]))
console.log(`${String(boxes.size).padStart(7)} folders and loose files in packages/core/src/limiter`)

heading("Documents, without the API, the records and the pages for contributors")
for (const [what, count] of countDocuments()) console.log(`${String(count).padStart(7)} ${what}`)

const sources = parse(paths)
list("Longest functions, in lines of code", functions(sources), LONG)
list("Deepest inheritance, in ancestors", inheritance(sources), DEEP)
list("Files with most imports", imports(sources), MANY)
