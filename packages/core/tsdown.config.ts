import type { UserConfig } from "tsdown"
import base, { billOfMaterials, bundledIn } from "../../tsdown.config.ts"

/**
 * Packages that are bundled, because the core needs only a small part of each. Loading their many files would take
 * longer than running that part.
 */
const BUILT_IN = ["content-type", "negotiator", "structured-headers", "valibot"]

/** The core has an entry point for each audience. */
const config: UserConfig = {
  ...base,
  entry: [
    ...["src/index.ts", "src/stores.ts", "src/adapters.ts", "src/kit.ts", "src/rules.ts", "src/replay.ts"],
    "src/testing.ts",
  ],
  // The packed core must stay small. Functions and classes keep their names, and statements are not joined, so that stack
  // traces can be read. Variables and private fields get short names.
  minify: {
    compress: { sequences: false, keepNames: { function: true, class: true } },
    mangle: { toplevel: true, keepNames: { function: true, class: true } },
    codegen: { removeWhitespace: true },
  },
  // A file for each set of entry points would need long lists of imports.
  outputOptions: {
    ...(base.outputOptions as object),
    codeSplitting: {
      groups: [
        { name: "shared", test: /(?<!\.d)\.m?[jt]s$/ },
        { name: "types.d", test: /\.d\.ts$/ },
      ].map((group) => ({ ...group, minShareCount: 2 })),
    },
  },
  plugins: [
    base.plugins,
    billOfMaterials(),
    {
      // Otherwise, private methods would get short names, too.
      name: "names-of-private-methods",
      renderChunk(code) {
        const program = this.parse(code, { lang: "ts" })
        const methods = privateMethodsIn(program)
        return privateNamesIn(program, undefined)
          .filter(({ name }) => methods.has(name))
          .sort((one, other) => other.start - one.start)
          .reduce((text, { start, end, isOperand }) => {
            const name = `${PRIVATE}${text.slice(start + 1, end)}`
            return text.slice(0, start) + (isOperand ? `"${name}"` : name) + text.slice(end)
          }, code)
      },
      generateBundle(_options, bundle) {
        for (const chunk of Object.values(bundle)) {
          if (chunk.type !== "chunk") continue
          chunk.code = chunk.code.replace(PRIVATE_NAMES, (_text, quote: string, name: string) =>
            // Before `in`, the minifier needs no blank after a string.
            quote === "" ? `#${name}` : `#${name} `,
          )
        }
      },
    },
    {
      // Otherwise a file would be one line, and Node would print all of it with an uncaught error.
      name: "line-for-each-statement",
      generateBundle(_options, bundle) {
        for (const chunk of Object.values(bundle)) {
          if (chunk.type !== "chunk" || !chunk.fileName.endsWith(".js")) continue
          const { code } = chunk
          const ends = [...new Set(endsOf(this.parse(code)))].sort((one, other) => one - other)
          const lines = ends.map((end, i) => code.slice(ends[i - 1] ?? 0, end))
          const rest = code.slice(ends.at(-1))
          // At the end of a line, a statement needs no semicolon unless the next line could continue it.
          const bare = lines.map((line, i) =>
            /^[([`+\-*/,.]/.test(lines[i + 1] ?? rest) ? line : line.replace(/;$/, ""),
          )
          // A test compares these comments with the licenses.
          const bundled = [...bundledIn(chunk.moduleIds).keys()].map((name) => `// Bundled package: ${name}`)
          chunk.code = [...bundled, ...bare].join("\n") + rest
          if (syntaxOf(this.parse(chunk.code)) !== syntaxOf(this.parse(code))) {
            throw new Error(`${chunk.fileName} has another meaning without semicolons.`)
          }
        }
      },
    },
    {
      // Only people who read the bundle need to know the files.
      name: "declarations-without-regions",
      generateBundle(_options, bundle) {
        for (const chunk of Object.values(bundle)) {
          if (chunk.type !== "chunk" || !chunk.fileName.endsWith(".d.ts")) continue
          chunk.code = chunk.code.replace(/^\/\/#(?:end)?region.*\n/gm, "")
        }
      },
    },
  ],
  deps: { alwaysBundle: BUILT_IN, onlyBundle: BUILT_IN },
  // Do not name the file "license". pnpm would mistake it for the package's own license, and leave that out.
  copy: [
    // The pages of all codes, because messages name them.
    { from: "../../docs/errors", to: "." },
    ...BUILT_IN.map((name) => ({
      from: `node_modules/${name}/LICENSE${name === "valibot" ? ".md" : ""}`,
      to: "dist",
      rename: `${name}-MIT.txt`,
    })),
  ],
}
export default config

/** Replaces the # of private methods while names are shortened. */
const PRIVATE = "private__"
const PRIVATE_NAMES = new RegExp(`(["'\`]?)${PRIVATE}(\\w+)\\1`, "g")

interface PrivateName {
  /** The name without its #. */
  readonly name: string
  readonly start: number
  readonly end: number
  /** Whether it is the left side of `in`. */
  readonly isOperand: boolean
}

/** Returns the names of the private members that stack traces may contain: methods, accessors and fields with a function. */
function privateMethodsIn(node: unknown): Set<string> {
  if (typeof node !== "object" || node === null) return new Set()
  const { type, key, value } = node as { type?: string; key?: PrivateKey; value?: { type: string } | null }
  const isFunction =
    type === "MethodDefinition" || (type === "PropertyDefinition" && /Function/.test(value?.type ?? ""))
  const names = Object.values(node).flatMap((child) => [...privateMethodsIn(child)])
  return new Set(isFunction && key?.type === "PrivateIdentifier" ? [...names, key.name] : names)
}

interface PrivateKey {
  readonly type: string
  readonly name: string
}

/** Returns where a piece of code names private members. */
function privateNamesIn(node: unknown, parent: unknown): PrivateName[] {
  if (typeof node !== "object" || node === null) return []
  const { type, name, start, end } = node as { type?: string; name: string; start: number; end: number }
  if (type === "PrivateIdentifier") {
    return [{ name, start, end, isOperand: (parent as { type?: string }).type === "BinaryExpression" }]
  }
  return Object.values(node).flatMap((child) => privateNamesIn(child, Array.isArray(node) ? parent : node))
}

/** Returns a program as text, without the places of its parts. */
function syntaxOf(program: unknown): string {
  return JSON.stringify(program, (name, value: unknown) => {
    if (name === "start" || name === "end") return undefined
    return typeof value === "bigint" ? `${value}n` : value
  })
}

/** Returns where the statements and the members of classes end. */
function endsOf(node: unknown): number[] {
  if (typeof node !== "object" || node === null) return []
  return Object.entries(node).flatMap(([name, child]) => {
    if (!Array.isArray(child)) return endsOf(child)
    const isList = name === "body" || name === "consequent"
    return child.flatMap((one) => [...endsOf(one), ...(isList ? [(one as { end: number }).end] : [])])
  })
}
