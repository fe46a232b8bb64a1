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

/** How a block of each language is covered here; yields what is wrong with it. Others need a test that names the document. */
const LANGUAGES: Readonly<Record<string, (block: Block) => string[] | Promise<string[]>>> = {
  ts: runBlock,
  js: runBlock,
  json: readData,
  yaml: readData,
  sh: lookUpCommands,
}

/** What a program prints or a server answers, and queries: only a test of their own can tell whether they are right. */
const TESTED_ELSEWHERE = ["text", "console", "http", "promql", "sql"]

/** Whether TypeScript has a say here. */
export function isTyped(block: Block): boolean {
  return (block.language === "ts" || block.language === "js") && !isRunAsInstalled(block)
}

/**
 * Whether it is a program in the README of a package, or in CommonJS: `test/packages` compiles and runs those where the package
 * has been installed, as its reader does.
 */
function isRunAsInstalled({ document, text }: Block): boolean {
  return document.startsWith("packages/") && /\.listen\(|\brequire\(/.test(text)
}

/**
 * Does with a block what its language asks for: runs it, parses it, looks its commands up; or sees that the test which its
 * comment names is there and speaks of the document. Yields what is wrong, each with its place; nothing is good.
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
  const isTest = test.endsWith(".test.ts") && existsSync(ROOT + test)
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
