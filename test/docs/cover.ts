import { existsSync, readFileSync } from "node:fs"
import { onTestFinished } from "vitest"
import { type Block, placeOf } from "./blocks.ts"
import { readData } from "./data.ts"
import { ROOT } from "./documents.ts"
import { askApp, givenTo } from "./preludes.ts"
import { lookUpCommands } from "./shell/look-up.ts"
import { closeAll, enterSurroundings } from "./surroundings.ts"
import { outlineOf } from "./typescript/outline.ts"
import { runTypeScript } from "./typescript/run.ts"

/**
 * The check for the blocks of each language. A check returns the problems of a block. Blocks in other languages need
 * a test that names the document.
 */
const LANGUAGES: Readonly<Record<string, (block: Block) => string[] | Promise<string[]>>> = {
  ts: runBlock,
  js: runBlock,
  json: readData,
  yaml: readData,
  sh: lookUpCommands,
}

/** Program output, server responses and queries. Only a separate test can check such a block. */
const TESTED_ELSEWHERE = ["text", "console", "http", "promql", "sql"]

/** True if TypeScript can check the block. */
export function isTyped(block: Block): boolean {
  return (block.language === "ts" || block.language === "js") && !isRunAsInstalled(block) && !isCopy(block)
}

/**
 * Tests that compare a block with the file from which it was copied. The file itself is compiled, so the block need
 * not be compiled.
 */
const COPIES = [
  "test/docs/nestjs.test.ts",
  "test/docs/recipes.test.ts",
  "test/node-http.test.ts",
  "test/postgres/store.test.ts",
]

/** True for a copy of a recipe or a part of an example. */
function isCopy({ testedBy = "" }: Block): boolean {
  return COPIES.includes(testedBy)
}

/**
 * True for a program in the README of a package, or in CommonJS. `test/packages` compiles and runs these programs in
 * a folder where the package is installed, as a reader would.
 */
function isRunAsInstalled({ document, text }: Block): boolean {
  return document.startsWith("packages/") && /\.listen\(|\bserve\(|\brequire\(/.test(text)
}

/**
 * Covers a block according to its language: runs or parses the block, or checks that its commands exist. If a comment
 * names a test, the test must exist and mention the document. Returns the problems of the block, each with its place.
 * The result is empty if the block is tested.
 */
export async function cover(block: Block): Promise<string[]> {
  const { language, testedBy } = block
  const check = LANGUAGES[language]
  if (check === undefined && !TESTED_ELSEWHERE.includes(language)) {
    return [`${placeOf(block)}: no test knows the language "${language}"`]
  }
  if (testedBy !== undefined) return namedBy(block, testedBy)
  if (check === undefined) return [`${placeOf(block)}: no test is named that tells whether this is right`]
  return await check(block)
}

function namedBy(block: Block, test: string): string[] {
  const isTest = /\.(test|check)\.ts$/.test(test) && existsSync(ROOT + test)
  if (!isTest) return [`${placeOf(block)}: ${test} is no test`]
  const speaks = readFileSync(ROOT + test, "utf8").includes(block.document)
  return speaks ? [] : [`${placeOf(block)}: ${test} says nothing of ${block.document}`]
}

async function runBlock(block: Block): Promise<string[]> {
  const { text } = block
  if (isRunAsInstalled(block)) return []
  if (text.includes(".listen("))
    return [`${placeOf(block)}: it listens on a port, so a test has to run it as a program`]
  const opensRedis = outlineOf(text).imports.some((name) => name === "ioredis" || name === "redis")
  if (opensRedis && !text.includes("REDIS_URL"))
    return [`${placeOf(block)}: where Redis is comes from REDIS_URL`]
  const warnings = await enterSurroundings(text)
  const given = await givenTo(block)
  const made = await runTypeScript(block, given)
  onTestFinished(() => closeAll(made))
  const wrong = await askApp(block, made.app ?? given.app)
  return [...wrong, ...warnings].map((line) => `${placeOf(block)}: ${line}`)
}
