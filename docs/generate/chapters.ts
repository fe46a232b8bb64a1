import { type DeclarationReflection, ReflectionCategory } from "typedoc"

/** A heading of a long page, and the files whose exports are listed under it. */
export interface Chapter {
  readonly title: string
  /** Prefixes of the paths of these files, relative to `src`. */
  readonly files: readonly string[]
  /** Names of the exports that come first. The others keep their order. */
  readonly first?: readonly string[]
}

/**
 * The chapters of each entry point, in the order in which a user needs them. A file belongs to the first chapter that
 * lists it.
 */
export type Chapters = Readonly<Record<string, readonly Chapter[]>>

const CORE: readonly Chapter[] = [
  {
    title: "Limiters",
    files: [
      "limiter/create-limiter.ts",
      "limiter/interface/limiter.ts",
      "limiter/decide-all.ts",
      "limiter/options/",
      "ground/answer.ts",
      "limiter/interface/mount-decision.ts",
      "limiter/interface/near-limit-event.ts",
      "request/",
      "ground/exact-numbers.ts",
      "http/headers.ts",
    ],
    first: ["createLimiter", "Limiter", "LimiterOptions", "InlineRule"],
  },
  {
    title: "Decisions",
    files: ["decision/"],
    first: ["Decision", "PolicyCheck", "Refusal", "explainDecision"],
  },
  {
    title: "Rule members",
    files: ["rules/", "algorithms/kinds.ts", "ground/policy.ts"],
    first: ["Rule"],
  },
  {
    title: "Memory store",
    files: ["stores/"],
    first: ["memoryStore", "MemoryStoreOptions", "MemoryStore"],
  },
  { title: "Clocks, logs and warnings", files: ["ground/clock.ts", "ground/warnings.ts"] },
  {
    title: "Errors",
    files: ["ground/errors.ts", "ground/credentials.ts"],
    first: ["SluiceError", "Problem"],
  },
]

/** The chapters of each entry point that has too many exports for a list by kind (functions, interfaces and so on). */
export const CHAPTERS: Chapters = { "@sluice/core": CORE }

/** Groups the exports of an entry point by chapter. Returns the names of the exports that belong to no chapter. */
export function intoChapters(door: DeclarationReflection, chapters: readonly Chapter[]): string[] {
  const categories = chapters.map(({ title }) => new ReflectionCategory(title))
  const left: string[] = []
  for (const declaration of door.children ?? []) {
    const file = declaration.project.getSymbolIdFromReflection(declaration)?.fileName ?? ""
    const at = chapters.findIndex(({ files }) => files.some((begin) => file.includes(`/src/${begin}`)))
    if (at === -1) left.push(declaration.name)
    else categories[at]?.children.push(declaration)
  }
  for (const [at, { first = [] }] of chapters.entries()) {
    const rank = ({ name }: { readonly name: string }) =>
      first.includes(name) ? first.indexOf(name) : first.length
    categories[at]?.children.sort((one, other) => rank(one) - rank(other))
  }
  door.categories = categories.filter(({ children }) => children.length > 0)
  return left
}
