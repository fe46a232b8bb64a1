import ts from "typescript"
import { expect } from "vitest"
import { type Block, placeOf } from "../blocks.ts"
import { onStandingClock } from "../standing-clock.ts"
import { outlineOf } from "./outline.ts"

type Values = Readonly<Record<string, unknown>>

/**
 * Runs a block of TypeScript as an async module. The block's imports are loaded, and `given` contains the names that
 * it assumes. Compares the values that the block states (`// => value`). Returns the values that the block declares.
 * Limiters in the block use a clock that does not advance.
 */
export async function runTypeScript(block: Block, given: Values = {}): Promise<Record<string, unknown>> {
  const { declares } = outlineOf(block.text)
  const code = compile(block.text)
  const modules = new Map<string, unknown>()
  for (const [, name = ""] of code.matchAll(/\brequire\(["']([^"']+)["']\)/g)) {
    // Compiled imports check whether a module was written as an ES module. Treat all of these modules as ES modules.
    modules.set(name, { ...onStandingClock(name, await import(/* @vite-ignore */ name)), __esModule: true })
  }
  const scope: Values = {
    ...given,
    exports: {},
    require: (name: string) => modules.get(name),
    __promised: (line: number, actual: unknown, expected: unknown) => {
      const isObject = typeof expected === "object" && expected !== null && !Array.isArray(expected)
      if (isObject) expect(actual, placeOf(block, line)).toMatchObject(expected)
      else expect(actual, placeOf(block, line)).toEqual(expected)
    },
  }
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor
  // Wrap the code in a block, so that its declarations hide the given names.
  const body = `"use strict"; {\n${code}\nreturn { ${declares.join(", ")} }\n}`
  try {
    return await new AsyncFunction(...Object.keys(scope), body)(...Object.values(scope))
  } catch (error) {
    throw new Error(`${placeOf(block)}: ${(error as Error).message}`, { cause: error })
  }
}

/** Returns JavaScript that loads imports with `require` and passes the stated values to `__promised`. */
function compile(text: string): string {
  let instrumented = text
  for (const { line, start, end, actual, isDeclaration, expected } of outlineOf(text).promises.toReversed()) {
    const call = `__promised(${line}, ${actual}, (${expected}));`
    const kept = isDeclaration ? `${text.slice(start, end)};` : ""
    instrumented = instrumented.slice(0, start) + kept + call + instrumented.slice(end)
  }
  return ts.transpileModule(`${instrumented}\nexport {}`, {
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2023,
      esModuleInterop: true,
      // The decorators of NestJS are not standard decorators.
      experimentalDecorators: true,
    },
  }).outputText
}
