import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { basename, dirname, relative, resolve } from "node:path"

/** The hooks that the bundler and the test runner have in common. */
interface PageTexts {
  readonly name: string
  readonly enforce: "pre"
  resolveId(source: string, importer: string | undefined): string | undefined
  load(id: string): Promise<string | undefined>
  generateBundle(options: unknown, bundle: object): void
}

const ROOT = dirname(import.meta.dirname)

interface Chunk {
  readonly type: "chunk" | "asset"
  readonly moduleIds: readonly string[]
  code: string
}

/**
 * Creates a plugin that imports the parts of HTML pages as strings, in the build and in tests. `style.css?text` is the
 * text of a file, and `main.ts?script` is a script for browsers with all of its imports, minified.
 */
export function pageTexts(): PageTexts {
  const sources = new Map<string, { path: string; kind: string }>()
  const bundled = new Map<string, readonly string[]>()
  return {
    name: "page-texts",
    // The test runner would find the files itself, and not load them as text.
    enforce: "pre",
    resolveId(source, importer) {
      const [, name, kind] = /^(.+)\?(text|script)$/.exec(source) ?? []
      if (name === undefined || kind === undefined || importer === undefined) return undefined
      const path = name.startsWith(".")
        ? resolve(dirname(importer), name)
        : createRequire(importer).resolve(name)
      // An id that ends in .css would be treated as a style sheet, and one in node_modules would not be loaded.
      const id = `\0${relative(ROOT, path).replaceAll(/[^\w.-]/g, "_")}.${kind}.js`
      sources.set(id, { path, kind })
      return id
    },
    async load(id) {
      const source = sources.get(id)
      if (source === undefined) return undefined
      if (source.kind === "text") return asModule(await readFile(source.path, "utf8"))
      const script = await bundle(source.path)
      bundled.set(id, script.packages)
      return asModule(script.code)
    },
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle) as Chunk[]) {
        if (chunk.type !== "chunk") continue
        const packages = new Set(chunk.moduleIds.flatMap((id) => bundled.get(id) ?? []))
        // A test compares these comments with the licenses.
        chunk.code = [...packages].map((name) => `// Bundled package: ${name}\n`).join("") + chunk.code
      }
    },
  }
}

function asModule(text: string): string {
  return `export default ${JSON.stringify(text)}`
}

/** Bundles a script for browsers, and returns the names of the packages that it contains. */
async function bundle(path: string): Promise<{ code: string; packages: readonly string[] }> {
  // Loaded on demand, because most test runs do not need the bundler.
  const { build } = await import("tsdown")
  const bundles = await build({
    config: false,
    cwd: dirname(path),
    entry: [basename(path)],
    format: "iife",
    platform: "browser",
    target: "es2022",
    minify: true,
    outputOptions: { comments: false },
    dts: false,
    write: false,
    clean: false,
    report: false,
    logLevel: "error",
    deps: { alwaysBundle: [/./], onlyBundle: false },
  })
  const [chunk, ...others] = bundles.flatMap(({ chunks }) => chunks)
  if (chunk?.type !== "chunk" || others.length > 0) throw new Error(`${path} must become one script`)
  const packages = chunk.moduleIds.flatMap(
    (id) => /.*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(id)?.[1] ?? [],
  )
  return { code: chunk.code, packages: [...new Set(packages)] }
}
