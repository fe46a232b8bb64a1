import { join } from "node:path"
import ts from "typescript"
import { type Block, placeOf } from "../blocks.ts"
import { ROOT } from "../documents.ts"
import { namesOf, preludeOf } from "../preludes.ts"
import { outlineOf } from "./outline.ts"

const FOLDER = join(ROOT, "test/docs")

/** The types of the framework's requests as apps have them that authenticate. */
const SURROUNDINGS = join(FOLDER, "preludes/surroundings.d.ts")

/**
 * What TypeScript says of blocks, each with its place: "README.md:15: Property … does not exist". All are checked as one program
 * by the settings of the repository, each a module of its own in which the names of its prelude are known.
 */
export async function checkTypes(blocks: readonly Block[]): Promise<string[]> {
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
    return file === undefined
      ? getSourceFile(name, version, ...rest)
      : ts.createSourceFile(name, file.text, version)
  }
  const program = ts.createProgram([SURROUNDINGS, ...files.keys()], settings, host)
  return [...files.keys()].flatMap((name) => {
    const source = program.getSourceFile(name)
    const { block } = files.get(name) as { block: Block }
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      (found) => {
        // The first line is the header's.
        const line = source?.getLineAndCharacterOfPosition(found.start ?? 0).line ?? 0
        return `${placeOf(block, line)}: ${ts.flattenDiagnosticMessageText(found.messageText, "\n")}`
      },
    )
  })
}

/** Declares what the block takes for granted, in one line. */
async function headerOf(block: Block): Promise<string> {
  const prelude = preludeOf(block)
  const { free } = outlineOf(block.text)
  const names = (await namesOf(prelude)).filter((name) => free.has(name))
  return names
    .map(
      (name) =>
        `declare const ${name}: Awaited<ReturnType<typeof import("./preludes/${prelude}.ts").given["${name}"]>>;`,
    )
    .join(" ")
}
