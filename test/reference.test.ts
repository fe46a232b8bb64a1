import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { makeReference, type Reference, stalePages } from "../docs/generate/reference.ts"

/** The texts of files, by their path in a source tree. */
type Files = Readonly<Record<string, string>>

const trees: string[] = []
afterAll(() => {
  for (const tree of trees) rmSync(tree, { recursive: true })
})

function plant(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), "sluice-reference-"))
  trees.push(root)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

const CHAPTERS = {
  "@sluice/one": [
    { title: "Taps", files: ["tap.ts"], first: ["openTap"] },
    { title: "Drains", files: ["drain.ts"] },
  ],
}

/** Two packages: one package has the entry points `.` and `./half`, and the other package has none. */
const WHOLE: Files = {
  "tsconfig.json": '{ "compilerOptions": { "strict": true, "types": [], "module": "nodenext" } }',
  "packages/none/package.json":
    '{ "name": "@sluice/none", "exports": { "./package.json": "./package.json" } }',
  "packages/one/package.json": `{
    "name": "@sluice/one",
    "type": "module",
    "exports": {
      ".": { "types": "./dist/index.d.ts", "default": "./dist/index.js" },
      "./half": { "types": "./dist/half.d.ts", "default": "./dist/half.js" },
      "./package.json": "./package.json"
    }
  }`,
  "packages/one/src/index.ts": `/**
 * Water. docs/taps/water.md has more.
 * @module @sluice/one
 */
export { Drain } from "./drain.ts"
export { openTap, type Tap, type TapOptions } from "./tap.ts"
`,
  "packages/one/src/half.ts": `/**
 * Half of it.
 * @module @sluice/one/half
 */

/** Closes a {@link Tap}, and what {@link Drain.pull} says stays. */
export function closeTap(tap: import("./tap.ts").Tap): void {
  tap.turn("shut")
}
`,
  "packages/one/src/tap.ts": `/** What a tap yields. */
export interface TapOptions {
  /** Litres a minute: default 5. */
  readonly flow?: number | undefined
}

/** Opened by {@link openTap}. */
export interface Tap {
  /** Turns it. */
  turn(
    way: Way,
    options?: {
      /** In seconds. */
      readonly within?: number
    },
  ): void
}

/** Ways to turn it. */
type Way =
  /** Water comes. */
  | "open"
  /** None does. */
  | "shut"

/**
 * Opens a tap.
 * @example
 * \`\`\`ts
 * openTap({ flow: 2 }) // 2 litres a minute
 * \`\`\`
 * @throws {@link Drain} where there is no water.
 */
export function openTap(options: TapOptions): Tap {
  return { turn: () => void options }
}
`,
  "packages/one/src/drain.ts": `/** Where it goes. */
export class Drain {
  /** Empties it. */
  pull(): void {}
}
`,
  "docs/reference/options.md": "# Options\n",
  "docs/reference/decision.md": "# The decision\n",
  "docs/reference/command-line.md": "# The command line\n",
  "docs/taps/water.md":
    "<!-- members of TapOptions of @sluice/one -->\n| option | |\n| --- | --- |\n| `flow` | litres |\n",
}

const make = (changes: Files): Promise<Reference> => makeReference(plant({ ...WHOLE, ...changes }), CHAPTERS)

describe("the reference", () => {
  it("contains a page for each entry point, with the text of its docstrings", async () => {
    const door = `${WHOLE["packages/one/src/index.ts"]}`.replace(
      "type TapOptions }",
      "type TapOptions, type Way }",
    )
    const tap = `${WHOLE["packages/one/src/tap.ts"]}`.replace("type Way", "export type Way")
    const { pages, problems } = await make({
      "packages/one/src/index.ts": door,
      "packages/one/src/tap.ts": tap,
    })
    expect(problems).toEqual([])
    const names = ["README.md", "one-drains.md", "one-half.md", "one-taps.md", "one.md"]
    expect([...pages.keys()].sort()).toEqual(names)
    expect(pages.get("one.md")).toBe(ONE)
    expect(pages.get("one-taps.md")).toBe(TAPS)
    expect(pages.get("one-drains.md")).toBe(DRAINS)
    expect(pages.get("one-half.md")).toContain(
      "Closes a [Tap](one-taps.md#Tap), and what [Drain.pull](one-drains.md#Drain.pull) says stays.",
    )
    expect(pages.get("README.md")).toContain(
      "| [`@sluice/one`](one.md) | Water. [docs/taps/water.md](../../taps/water.md) has more. |",
    )
  })

  it("comes with a list of all missing docstrings, exports, chapters and link targets", async () => {
    const { problems } = await make({
      "packages/one/src/index.ts": `${WHOLE["packages/one/src/index.ts"]}export { Hole, late } from "./late.ts"\n`,
      "packages/one/src/half.ts": `${WHOLE["packages/one/src/half.ts"]}`
        .replace("@module @sluice/one/half", "@module")
        .replace("{@link Drain.pull}", "{@link Drain.push}"),
      "packages/one/src/late.ts":
        "export const late = 1\nexport class Hole {\n  constructor(readonly depth: number) {}\n}\n",
      "packages/one/src/tap.ts": `${WHOLE["packages/one/src/tap.ts"]}`
        .replace("/** Litres a minute: default 5. */", "")
        .replace("/** Turns it. */", "")
        .replace("/** In seconds. */", "")
        .replace("{@link Drain}", "{@link Well.deep}, docs/taps/floods.md,"),
      "docs/taps/water.md": "<!-- members of Tap -->\n| member |\n| --- |\n| `spin` |\n",
      "docs/taps/wells.md": "<!-- members of Well -->\n| member |\n| --- |\n| `deep` |\n",
      "docs/taps/lakes.md": "<!-- members of Tap, without those of TapOptions -->\nNo table.\n",
    })
    expect(problems).toEqual([
      'Failed to resolve link to "Well.deep" in comment for @sluice/one.openTap',
      'packages/one/src/half.ts has no docstring with "@module @sluice/one/half"',
      "@sluice/one.Tap.turn has no docstring",
      "@sluice/one.Tap.turn.options.within has no docstring",
      "@sluice/one.TapOptions.flow has no docstring",
      "@sluice/one.Hole has no docstring",
      "@sluice/one.Hole.constructor has no docstring",
      "@sluice/one.Hole.depth has no docstring",
      "@sluice/one.late has no docstring",
      "@sluice/one.Tap.turn.way: Way is not exported, and so nowhere in the reference",
      "@sluice/one.late is in no chapter: docs/generate/chapters.ts",
      "@sluice/one.Hole is in no chapter: docs/generate/chapters.ts",
      "half.md: (one.md#Drain.push) leads nowhere",
      "one-taps.md: (../../taps/floods.md) leads nowhere",
      "docs/taps/lakes.md: <!-- members of Tap, without those of TapOptions -->: no table comes after it",
      "docs/taps/water.md: <!-- members of Tap -->: turn is missing",
      "docs/taps/water.md: <!-- members of Tap -->: spin is no member",
      "docs/taps/wells.md: <!-- members of Well -->: no entry point exports Well",
    ])
  })

  it("is reported as stale if a page has changed, is missing or is no longer needed", async () => {
    const folder = plant({ "README.md": "one", "one.md": "changed", "old.md": "gone" })
    const pages = new Map([
      ["README.md", "one"],
      ["one.md", "two"],
      ["new.md", "three"],
    ])
    expect(stalePages(pages, folder).sort()).toEqual(["new.md", "old.md", "one.md"])
    expect(stalePages(pages, join(folder, "nowhere")).sort()).toEqual(["README.md", "new.md", "one.md"])
  })
})

const ONE = `<!-- Made from the docstrings by \`pnpm reference\`. -->
# @sluice/one

Water. [docs/taps/water.md](../../taps/water.md) has more.

## Chapters

| chapter | exports |
| --- | --- |
| [Taps](one-taps.md) | [\`openTap\`](one-taps.md#openTap), [\`TapOptions\`](one-taps.md#TapOptions), [\`Tap\`](one-taps.md#Tap), [\`Way\`](one-taps.md#Way) |
| [Drains](one-drains.md) | [\`Drain\`](one-drains.md#Drain) |
`

const TAPS = `<!-- Made from the docstrings by \`pnpm reference\`. -->
# @sluice/one: Taps

<a id="openTap"></a>

## openTap()

> **openTap**(\`options\`: [\`TapOptions\`](#TapOptions)): [\`Tap\`](#Tap)

Opens a tap.

**Throws**

[Drain](one-drains.md#Drain) where there is no water.

**Example**

\`\`\`ts
openTap({ flow: 2 }) // 2 litres a minute
\`\`\`

<a id="TapOptions"></a>

## TapOptions

What a tap yields.

### Properties

| Property | Type | Description |
| ------ | ------ | ------ |
| <a id="TapOptions.flow"></a> \`flow?\` | \`number\` | Litres a minute: default 5. |

<a id="Tap"></a>

## Tap

Opened by [openTap](#openTap).

### Methods

<a id="Tap.turn"></a>

#### turn()

> **turn**(\`way\`: [\`Way\`](#Way), \`options?\`: \\{ \`within?\`: \`number\`; \\}): \`void\`

Turns it.

- \`options.within\`: In seconds.

<a id="Way"></a>

## Way

> **Way** = \`"open"\` \\| \`"shut"\`

Ways to turn it.

- \`"open"\`: Water comes.
- \`"shut"\`: None does.
`

const DRAINS = `<!-- Made from the docstrings by \`pnpm reference\`. -->
# @sluice/one: Drains

<a id="Drain"></a>

## Drain

Where it goes.

### Constructors

<a id="Drain.constructor"></a>

#### Constructor

> **new Drain**(): [\`Drain\`](#Drain)

### Methods

<a id="Drain.pull"></a>

#### pull()

> **pull**(): \`void\`

Empties it.
`
