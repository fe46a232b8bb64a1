import { existsSync, readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { type Block, placeOf } from "../blocks.ts"
import { ROOT } from "../documents.ts"
import { parseCurl } from "./curl.ts"
import { wrongUsage } from "./flags.ts"
import { unknownPackage, wrongNpm, wrongPnpm } from "./packages.ts"
import { commandLines } from "./words.ts"

/** The context in which a command line is checked. */
interface Place {
  /** The block's current folder, relative to the root. */
  folder: string
  /** The folders that the block has created. */
  readonly made: Set<string>
  readonly env: Readonly<Record<string, string>>
}

type LookUp = (args: readonly string[], place: Place) => string | undefined | Promise<string | undefined>

/** The checks of the programs that documents may call. A check returns the mistakes in a call. */
const PROGRAMS: Readonly<Record<string, LookUp>> = {
  cd([folder = ""], place) {
    place.folder = normalize(join(place.folder, folder))
    return place.made.has(place.folder) ? undefined : missing(place.folder)
  },
  mkdir([folder = ""], place) {
    place.made.add(normalize(join(place.folder, folder)))
    return undefined
  },
  npx: (args, place) => npx(args, place),
  npm: wrongNpm,
  curl: (args) => {
    parseCurl(["curl", ...args])
    return undefined
  },
  docker: (args) => missing(args[args.indexOf("--file") + 1] ?? "?"),
  grpcurl: (args) => grpcurl(args),
  sluice: (args) => wrongUsage("sluice", args),
  "sluice-service": (args) => wrongUsage("sluice-service", args),
  ".ci/run": () => missing(".ci/run"),
}

/**
 * Returns the mistakes in the command lines of a block, each with its place. Finds programs, scripts, files and
 * flags that do not exist.
 */
export async function lookUpCommands(block: Block): Promise<string[]> {
  const wrong: string[] = []
  const place: Place = { folder: ".", made: new Set(), env: {} }
  for (const { line, words } of commandLines(block.text)) {
    const first = words.findIndex((word) => !/^\w+=/.test(word))
    const [program = "", ...args] = words.slice(first)
    const env = Object.fromEntries(words.slice(0, first).map((word) => word.split(/=(.*)/s, 2)))
    try {
      const lookUp = PROGRAMS[program]
      const here: Place = { ...place, env }
      const problem =
        lookUp === undefined ? `${program} is a program that nobody looks up` : await lookUp(args, here)
      place.folder = here.folder
      if (problem !== undefined) wrong.push(`${placeOf(block, line)}: ${problem}`)
    } catch (error) {
      wrong.push(`${placeOf(block, line)}: ${(error as Error).message}`)
    }
  }
  return wrong
}

/**
 * Checks `npx -y pnpm@10.34.9 test`, where the script is from the folder's package or pnpm itself; `npx tsx
 * src/main.ts`; our programs; packages of the workspace.
 */
function npx(args: readonly string[], { folder, env }: Place): string | undefined {
  const [name = "", ...rest] = args.filter((word) => word !== "-y")
  if (name.startsWith("pnpm@")) return wrongPnpm([name, ...rest], folder)
  if (name === "tsx") {
    const file = join(folder, rest[0] ?? "?")
    return missing(file) ?? unreadVariable(env, file)
  }
  if (name === "sluice" || name === "sluice-service") return wrongUsage(name, rest)
  return unknownPackage(name)
}

function unreadVariable(env: Readonly<Record<string, string>>, file: string): string | undefined {
  const text = readFileSync(ROOT + file, "utf8")
  const unread = Object.keys(env).find((name) => !new RegExp(`process\\.env\\.${name}\\b`).test(text))
  return unread === undefined ? undefined : `${file} reads no ${unread}`
}

function grpcurl(args: readonly string[]): string | undefined {
  const behind = (flag: string): string => args[args.indexOf(flag) + 1] ?? "?"
  const proto = join(behind("-import-path"), behind("-proto"))
  const wrong = missing(proto)
  if (wrong !== undefined) return wrong
  JSON.parse(behind("-d"))
  const [service = "", method = ""] = (args.at(-1) ?? "").split("/")
  const text = readFileSync(ROOT + proto, "utf8")
  const isThere = text.includes(`service ${service.split(".").at(-1)} {`) && text.includes(`rpc ${method}(`)
  return isThere ? undefined : `${proto} has no ${args.at(-1)}`
}

function missing(path: string): string | undefined {
  return existsSync(join(ROOT, path)) ? undefined : `${path} is not there`
}
