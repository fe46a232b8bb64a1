import type { DeclarationReflection, ProjectReflection } from "typedoc"
import { literalsOf } from "./literals.ts"

/**
 * What is wrong with the tables of a page that claim to have every member of a type. The claim is a comment before the table:
 * `members of RuleBookOptions`, and where it needs it ` of @sluice/core`; then what it leaves out, `, without random` or
 * `, without those of Rule`. The members are the code in the first column.
 */
export function tableProblems(page: string, text: string, project: ProjectReflection): string[] {
  return [...text.matchAll(CLAIM)].flatMap(([claim, type = "", door, others, without, table = ""]) => {
    const at = `${page}: ${claim.split("\n")[0]}`
    const members = membersOf(project, type, door)
    const left = others === undefined ? [without] : membersOf(project, others)
    if (members === undefined || left === undefined)
      return [`${at}: no door exports ${members ? others : type}`]
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

/** Of an alias, the members that it spells out itself. */
function namesOf({ children, type }: DeclarationReflection): string[] {
  const own = children ?? literalsOf(type).flatMap((literal) => literal.children ?? [])
  return own.map(({ name }) => name)
}
