import { delimiter } from "node:path"

/**
 * Variables that the tools around this program set, and that a user's terminal does not contain. The machine's own
 * settings are kept.
 */
const OF_TOOLS =
  /^(npm_(?!config_(registry|cache|userconfig)$).*|NODE_(OPTIONS|PATH|ENV|V8_COVERAGE)|VITEST.*|TEST|PROD|DEV|MODE|SSR|BASE_URL|INIT_CWD|PNPM_.*)$/i

/** Returns the environment of a user's terminal in which `node` is the program in this folder. */
export function environment(nodeFolder: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !OF_TOOLS.test(name))
  return { ...Object.fromEntries(kept), PATH: `${nodeFolder}${delimiter}${process.env.PATH}` }
}
