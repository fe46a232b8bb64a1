import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { globSync } from "tinyglobby"
import ts from "typescript"

const ROOT = fileURLToPath(new URL("../../", import.meta.url))
const ignore = ["**/node_modules/**", "**/dist/**", "**/*.d.ts"]

/** A TypeScript file, parsed. */
export interface Source {
  /** The file's path, relative to the root of the repository. */
  readonly path: string
  readonly ast: ts.SourceFile
}

/** Returns the paths of the sources of all packages, without their tests and generated code. */
export function sourcePaths(): string[] {
  const tests = ["**/*.test.ts", "**/*.test-d.ts", "**/testing/**", "**/gen/**"]
  return globSync("packages/*/src/**/*.{ts,lua}", { cwd: ROOT, ignore: [...ignore, ...tests] }).sort()
}

/** Returns the paths of all tests and of the files that only tests use. */
export function testPaths(): string[] {
  const everywhere = ["*.test.ts", "*.test-d.ts", "testing/**/*.ts"].map((end) => `packages/*/src/**/${end}`)
  const other = ["{examples,bench}/**/*.test.ts", "test/**/*.ts"]
  return globSync([...everywhere, ...other], { cwd: ROOT, ignore }).sort()
}

/** Returns the text of a file, which is named from the root of the repository. */
export function textOf(path: string): string {
  return readFileSync(ROOT + path, "utf8")
}

/** Parses a TypeScript file. */
export function parseText(path: string, text: string): Source {
  return { path, ast: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true) }
}

/** Parses the TypeScript files in a list. */
export function parse(paths: readonly string[]): Source[] {
  return paths.filter((path) => path.endsWith(".ts")).map((path) => parseText(path, textOf(path)))
}

/** Returns the number of lines in a text that are neither blank nor comments. */
export function codeLines(text: string): number {
  return text
    .replace(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, "")
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\s*(?:\/\/|--)/.test(line)).length
}
