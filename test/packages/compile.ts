import { readFileSync } from "node:fs"
import type { ModuleSystem, Project } from "./project.ts"
import { blocksOf } from "./quick-start.ts"

/** How TypeScript finds modules, and what goes with it. */
const MODULES = { nodenext: "nodenext", bundler: "preserve" } as const

/** As strict as it gets. */
const OPTIONS = {
  target: "es2022",
  lib: ["es2022"],
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  // CommonJS in JavaScript is what the READMEs show.
  allowJs: true,
  checkJs: true,
}

/** What is compiled, and how. */
interface Compilation {
  readonly moduleResolution: keyof typeof MODULES
  readonly types: readonly ModuleSystem[]
  /** Packages, without their scope. */
  readonly names: readonly string[]
  /** How many blocks of code of each README: default all. */
  readonly blocks?: number
  /** Whether declarations are taken as they are, ours and those that they lean on: default false. */
  readonly skipLibCheck?: boolean
}

/**
 * Compiles users' files in a project: `typescript/<name>.ts` beside this file, and what the READMEs of those packages show.
 * Yields what TypeScript says, a line each, with paths in the project.
 */
export async function compile(
  project: Project,
  { moduleResolution, types, names, blocks, skipLibCheck = false }: Compilation,
): Promise<string[]> {
  for (const type of types) {
    for (const name of names) {
      const text = readFileSync(new URL(`typescript/${name}.ts`, import.meta.url), "utf8")
      project.write(`${type}/typed/${name}.ts`, text)
      const language = type === "module" ? "ts" : "js"
      for (const [at, block] of blocksOf(project, name, language).slice(0, blocks).entries()) {
        project.write(`${type}/typed/readme-${name}-${at + 1}.${language}`, block)
      }
    }
  }
  const compilerOptions = { ...OPTIONS, skipLibCheck, moduleResolution, module: MODULES[moduleResolution] }
  const include = types.map((type) => `${type}/typed`)
  project.write(`tsconfig.${moduleResolution}.json`, JSON.stringify({ compilerOptions, include }))
  const tsc = project.installed(".bin", "tsc")
  const { code, stdout } = await project.start(tsc, ["-p", `tsconfig.${moduleResolution}.json`]).ended
  const said = stdout.split("\n").filter((line) => line !== "")
  // Told apart from "nothing to say".
  return code === 0 || said.length > 0 ? said : [`tsc ended with ${code}`]
}
