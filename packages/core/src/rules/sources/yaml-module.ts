import { createRequire } from "node:module"

type Yaml = typeof import("yaml")

let loaded: Yaml | undefined

/**
 * Returns the YAML library, and loads it on the first call: it takes half as long to load as the rest of the core.
 * `import()` would not do, because a limiter reads its rules file synchronously when it is created.
 */
export function yaml(): Yaml {
  loaded ??= createRequire(import.meta.url)("yaml") as Yaml
  return loaded
}
