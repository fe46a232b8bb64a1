import type { DeclarationReflection, ProjectReflection, SomeType } from "typedoc"
import { literalsOf } from "./literals.ts"

/**
 * Returns the problems of the tables on a page that claim to list every member of a type. The claim is a comment before
 * the table, such as `members of RuleBookOptions`. ` of @sluice/core` may follow, to name the entry point of the type.
 * The claim ends with the members that the table omits: `, without random` or `, without those of Rule`. The table
 * lists the members as code in its first column.
 */
export function tableProblems(page: string, text: string, project: ProjectReflection): string[] {
  return [...text.matchAll(CLAIM)].flatMap(([claim, type = "", door, others, without, table = ""]) => {
    const at = `${page}: ${claim.split("\n")[0]}`
    const members = membersOf(project, type, door)
    const left = others === undefined ? [without] : membersOf(project, others)
    if (members === undefined || left === undefined)
      return [`${at}: no entry point exports ${members ? others : type}`]
    const named = new Set(
      table
        .split("\n")
        .flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => name)),
    )
    if (named.size === 0) return [`${at}: no table comes after it`]
    const missing = members.filter((name) => !named.has(name) && !left.includes(name))
    const unknown = [...named].filter((name) => name !== undefined && !members.includes(name))
    return [
      ...missing.map((name) => `${at}: ${name} is missing`),
      ...unknown.map((name) => `${at}: ${name} is no member`),
    ]
  })
}

const CLAIM =
  /<!-- members of (\w+)(?: of (@[\w/-]+))?(?:, without (?:those of (\w+)|(\w+)))? -->\n+((?:\|.*\n?)*)/g

function membersOf(project: ProjectReflection, type: string, door?: string): string[] | undefined {
  const found = project.children
    ?.filter(({ name }) => door === undefined || name === door)
    .flatMap(({ children = [] }) => children)
    .find(({ name }) => name === type)
  return found && namesOf(found)
}

/**
 * Returns the names of the members of a type. For an alias, these are the members of the object types written out in it.
 * If it is a union of exported types, they are the members of all of these.
 */
function namesOf({ children, type }: DeclarationReflection): string[] {
  const parts = type?.type === "union" ? type.types.flatMap(exportedBy) : []
  const own = children ?? [...literalsOf(type), ...parts].flatMap((part) => part.children ?? [])
  return [...new Set(own.map(({ name }) => name))]
}

function exportedBy(type: SomeType): DeclarationReflection[] {
  const found = type.type === "reference" ? type.reflection : undefined
  return found?.isDeclaration() === true ? [found] : []
}
