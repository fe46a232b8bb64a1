import { readFileSync } from "node:fs"
import { ADAPTERS } from "./manifests.ts"
import type { ModuleSystem, Project } from "./project.ts"
import { blocksOf, isDecorated, quickStart } from "./quick-start.ts"

/** TypeScript's module resolutions, with the matching `module` option. */
const MODULES = { nodenext: "nodenext", bundler: "preserve" } as const

/** The strictest settings. */
const OPTIONS = {
  target: "es2022",
  lib: ["es2022"],
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  // NestJS needs them.
  experimentalDecorators: true,
  // The apps of the READMEs are JavaScript in CommonJS.
  allowJs: true,
  checkJs: true,
}

/**
 * The error messages about faulty declarations in other packages. Users get these errors only with `skipLibCheck:
 * false`.
 */
const WRONG_BY_THEMSELVES = [
  // This package accepts any version of content-disposition. Version 2.0 has its own types, without an `Options` type.
  "node_modules/@types/koa/index.d.ts",
  // These declarations of NestJS 10.0 contradict the class that they extend.
  "node_modules/@nestjs/common/pipes/file/file-type.validator.d.ts",
  "node_modules/@nestjs/common/pipes/file/max-file-size.validator.d.ts",
  // These declarations need browser types.
  "node_modules/hono/dist/types/client/types.d.ts",
  "node_modules/hono/dist/types/hono-base.d.ts",
  "node_modules/hono/dist/types/helper/websocket/index.d.ts",
]

/** The files to compile, and the settings. */
interface Compilation {
  readonly moduleResolution: keyof typeof MODULES
  readonly types: readonly ModuleSystem[]
  /** Names of packages, without their scope. */
  readonly names: readonly string[]
  /** The number of TypeScript blocks of each README; all by default. */
  readonly blocks?: number
  /** True if TypeScript does not check declarations, whether they are ours or from dependencies. Default: false. */
  readonly skipLibCheck?: boolean
  /** Adapts the users' files to other versions of packages. */
  readonly edit?: (text: string) => string
}

/**
 * Compiles users' files in a project: `typescript/<name>.ts` next to this file, and the code in the READMEs of those
 * packages. Returns TypeScript's messages, one per line, with paths in the project. Messages about faulty
 * declarations in other packages are excluded.
 */
export async function compile(
  project: Project,
  { moduleResolution, types, names, blocks, skipLibCheck = false, edit = String }: Compilation,
): Promise<string[]> {
  for (const type of types) {
    for (const name of names) {
      const text = readFileSync(new URL(`typescript/${name}.ts`, import.meta.url), "utf8")
      project.write(`${type}/typed/${name}.ts`, edit(text))
      if (type === "module") {
        for (const [at, block] of blocksOf(project, name, "ts").slice(0, blocks).entries()) {
          project.write(`${type}/typed/readme-${name}-${at + 1}.ts`, edit(block))
        }
      } else if (ADAPTERS.includes(name)) {
        const app = edit(quickStart(project, name, type))
        project.write(`${type}/typed/readme-${name}.${isDecorated(app) ? "ts" : "js"}`, app)
      }
    }
  }
  const compilerOptions = { ...OPTIONS, skipLibCheck, moduleResolution, module: MODULES[moduleResolution] }
  const include = types.map((type) => `${type}/typed`)
  project.write(`tsconfig.${moduleResolution}.json`, JSON.stringify({ compilerOptions, include }))
  const tsc = project.installed(".bin", "tsc")
  const { code, stdout } = await project.start(tsc, ["-p", `tsconfig.${moduleResolution}.json`]).ended
  const said = stdout.split("\n").filter((line) => line !== "")
  // Distinguishes a failure without output from a success.
  if (code !== 0 && said.length === 0) return [`tsc ended with ${code}`]
  let isWrongByItself = false
  return said.filter((line) => {
    // Indented lines belong to the message above them.
    if (!line.startsWith(" "))
      isWrongByItself = WRONG_BY_THEMSELVES.some((file) => line.startsWith(`${file}(`))
    return !isWrongByItself
  })
}
