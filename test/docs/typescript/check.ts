import { join } from "node:path"
import ts from "typescript"
import { type Block, placeOf } from "../blocks.ts"
import { ROOT } from "../documents.ts"
import { apps } from "../preludes/apps.ts"
import { namesOf, preludeOf } from "../preludes.ts"
import { outlineOf } from "./outline.ts"

const FOLDER = join(ROOT, "test/docs")

/** Declarations for the framework's requests, as in apps with authentication. */
const SURROUNDINGS = join(FOLDER, "preludes/surroundings.d.ts")

/** Ignore modules without types. Blocks also show code of other limiters. */
const UNTYPED_MODULE = 7016

/**
 * Returns TypeScript's errors in blocks, each with its place: "README.md:15: Property … does not exist". The
 * repository's settings apply. Each block is a module that can use the names of its prelude. All blocks form one
 * program, except apps with another limiter, which form a second one. In a single program, the declarations of a
 * framework's types would conflict.
 */
export async function checkTypes(blocks: readonly Block[]): Promise<string[]> {
  const [others, ours] = [blocks.filter(isOfOthers), blocks.filter((block) => !isOfOthers(block))]
  const told: string[] = []
  for (const together of [ours, others]) if (together.length > 0) told.push(...(await checkProgram(together)))
  return told
}

/** True for an app that does not use Sluice. */
function isOfOthers({ text }: Block): boolean {
  const { imports, free } = outlineOf(text)
  return imports.length > 0 && !imports.some((name) => name.startsWith("@sluice/")) && free.has("app")
}

/** Files other than blocks are parsed only once, because reading the libraries' types takes most of the time. */
const parsed = new Map<string, ts.SourceFile | undefined>()

async function checkProgram(blocks: readonly Block[]): Promise<string[]> {
  const files = new Map<string, { readonly block: Block; readonly text: string }>()
  for (const [number, block] of blocks.entries()) {
    files.set(join(FOLDER, `block-${number}.ts`), {
      block,
      text: `${await headerOf(block)}\n${block.text}export {}\n`,
    })
  }
  const { options } = ts.parseJsonConfigFileContent(
    {
      ...ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile).config,
      include: [],
      files: [SURROUNDINGS],
    },
    ts.sys,
    ROOT,
  )
  // Disable incremental builds, because this program is compiled only once.
  const { incremental, tsBuildInfoFile, ...settings } = options
  const host = ts.createCompilerHost(settings)
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (name) => files.has(name) || fileExists(name)
  host.readFile = (name) => files.get(name)?.text ?? readFile(name)
  host.getSourceFile = (name, version, ...rest) => {
    const file = files.get(name)
    if (file !== undefined) return ts.createSourceFile(name, file.text, version)
    if (!parsed.has(name)) parsed.set(name, getSourceFile(name, version, ...rest))
    return parsed.get(name)
  }
  const program = ts.createProgram([SURROUNDINGS, ...files.keys()], settings, host)
  return [...files.keys()].flatMap((name) => {
    const source = program.getSourceFile(name)
    const { block } = files.get(name) as { block: Block }
    const all = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return all
      .filter(({ code }) => code !== UNTYPED_MODULE)
      .map((found) => {
        // The first line is the header of the message.
        const line = source?.getLineAndCharacterOfPosition(found.start ?? 0).line ?? 0
        return `${placeOf(block, line)}: ${ts.flattenDiagnosticMessageText(found.messageText, "\n")}`
      })
  })
}

/** Returns one line that declares the names which the block uses from its prelude. */
async function headerOf(block: Block): Promise<string> {
  const prelude = preludeOf(block)
  const { free } = outlineOf(block.text)
  const names = (await namesOf(prelude)).filter((name) => free.has(name))
  const bare = isOfOthers(block) ? Object.keys(apps[prelude as keyof typeof apps] ?? {}) : []
  return names
    .map((name) => {
      const [file, given] = bare.includes(name) ? ["apps", `apps["${prelude}"]`] : [prelude, "given"]
      return `declare const ${name}: Awaited<ReturnType<typeof import("./preludes/${file}.ts").${given}["${name}"]>>;`
    })
    .join(" ")
}
