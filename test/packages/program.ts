import type { ModuleSystem } from "./project.ts"

/** The imports of a program, by module: names, or "name as another". A module without names is only loaded. */
export type Imports = Readonly<Record<string, readonly string[]>>

/**
 * Returns a program as a user writes it in a module system, with `import` or with `require`. The program's body may
 * use `await`. If the module system does not allow `await` there, the body is wrapped in a function.
 */
export function programOf(type: ModuleSystem, imports: Imports, body: string): string {
  const heads = Object.entries(imports).map(([module, names]) => {
    const bound = `{ ${names.join(", ")} }`
    if (names.length === 0) return type === "module" ? `import "${module}"` : `require("${module}")`
    if (type === "module") return `import ${bound} from "${module}"`
    return `const ${bound.replaceAll(" as ", ": ")} = require("${module}")`
  })
  const whole = type === "module" ? body : `async function main() {\n${body}\n}\nmain()`
  return `${heads.join("\n")}\n\n${whole}\n`
}
