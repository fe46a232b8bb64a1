import { join } from "node:path"
import ts from "typescript"
import { type Block, placeOf } from "../blocks.ts"
import { ROOT } from "../documents.ts"
import { apps } from "../preludes/apps.ts"
import { namesOf, preludeOf } from "../preludes.ts"
import { outlineOf } from "./outline.ts"

const FOLDER = join(ROOT, "test/docs")

/** The types of the framework's requests as apps have them that authenticate. */
const SURROUNDINGS = join(FOLDER, "preludes/surroundings.d.ts")

/** A module that comes without types is nobody's fault here: other limiters are shown as they are. */
const UNTYPED_MODULE = 7016

/**
 * What TypeScript says of blocks, each with its place: "README.md:15: Property … does not exist". They are checked by the
 * settings of the repository, each a module of its own in which the names of its prelude are known: as one program, but for
 * apps with another limiter, which are one of their own. What both declare of a framework's types would not go together.
 */
export async function checkTypes(blocks: readonly Block[]): Promise<string[]> {
  const [others, ours] = [blocks.filter(isOfOthers), blocks.filter((block) => !isOfOthers(block))]
  const told: string[] = []
  for (const together of [ours, others]) if (together.length > 0) told.push(...(await checkProgram(together)))
  return told
}

/** Whether it is an app that knows nothing of Sluice. */
function isOfOthers({ text }: Block): boolean {
  const { imports, free } = outlineOf(text)
  return imports.length > 0 && !imports.some((name) => name.startsWith("@sluice/")) && free.has("app")
}

/** What is not a block is parsed once: most of the work is the types of the libraries. */
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
  // This program is nobody's to be continued.
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
        // The first line is the header's.
        const line = source?.getLineAndCharacterOfPosition(found.start ?? 0).line ?? 0
        return `${placeOf(block, line)}: ${ts.flattenDiagnosticMessageText(found.messageText, "\n")}`
      })
  })
}

/** Declares what the block takes for granted, in one line. */
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
