import type { FileProblem } from "@sluice/rules"
import { counted } from "../counted.ts"
import type { Io } from "../io.ts"
import { type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { type ReadFile, type ReadOptions, readRulesFile } from "../rules-file.ts"

/** Runs `sluice rules check FILE...`: reports every problem of every file. */
export async function check(names: readonly string[], options: ReadOptions, io: Io): Promise<CommandOutcome> {
  const files: ReadFile[] = []
  for (const name of names) files.push(await readRulesFile(name, options, io))
  const documents = files.flatMap((file) => file.documents)
  const services = documents.length
  const rules = documents.reduce((sum, document) => sum + document.rules.length, 0)
  const problems = files.reduce((sum, file) => sum + file.problems.length, 0)
  const wrong = files.filter((file) => file.problems.length > 0).length
  const warnings = files.reduce((sum, file) => sum + file.warnings.length, 0)
  const isGood = problems === 0
  const verdict = isGood
    ? `${counted(services, "service")}, ${counted(rules, "rule")}: ok${warnings === 0 ? "" : `, with ${counted(warnings, "warning")}`}`
    : `${counted(problems, "problem")} in ${wrong === files.length ? counted(wrong, "file") : `${wrong} of ${counted(files.length, "file")}`}`
  return {
    exitCode: isGood ? EXIT.ok : EXIT.problems,
    json: {
      ok: isGood,
      services,
      rules,
      problems: files.flatMap(problemValues),
      warnings: files.flatMap(({ name, warnings }) => warnings.map((each) => ({ file: name, ...each }))),
      notes: files.flatMap(({ name, notes }) => notes.map((each) => ({ file: name, ...each }))),
    },
    text: [
      ...files.flatMap((file) => [...problemLines(file), ...warningLines(file), ...noteLines(file)]),
      tinted(isGood ? "good" : "bad", verdict),
    ],
  }
}

/** Returns the lines for valid values that are probably mistakes. */
export function warningLines({ name, warnings }: ReadFile): OutputLine[] {
  return placedLines(name, warnings, "changed", "warning: ")
}

/** Returns the lines for defaults that a reader may overlook. */
function noteLines({ name, notes }: ReadFile): OutputLine[] {
  return placedLines(name, notes, "quiet", "note: ")
}

/** Returns the outcome of a command that changed nothing because its file has problems. */
export function refusal(file: ReadFile): CommandOutcome {
  return {
    exitCode: EXIT.problems,
    json: { ok: false, problems: problemValues(file) },
    text: [],
    errors: [
      ...problemLines(file),
      tinted("bad", `${counted(file.problems.length, "problem")} in ${file.name}: nothing was changed`),
    ],
  }
}

function problemValues(file: ReadFile): (FileProblem & { file: string })[] {
  return file.problems.map((problem) => ({ file: file.name, ...problem }))
}

function problemLines({ name, problems }: ReadFile): OutputLine[] {
  return placedLines(name, problems, "bad")
}

/**
 * Returns lines such as `rules.yaml:5:35: rules[0].rate.unit: "minit" is not a unit`, followed by the accepted values.
 */
function placedLines(
  name: string,
  problems: readonly FileProblem[],
  tone: "bad" | "changed" | "quiet",
  kind = "",
): OutputLine[] {
  return problems.flatMap(({ line, column, path, message, accepted }): OutputLine[] => [
    [
      tinted("strong", `${name}:${line}:${column}: `),
      path === "" ? kind : `${kind}${path}: `,
      tinted(tone, message),
    ],
    ...(accepted === undefined ? [] : [tinted("quiet", `    accepted: ${accepted}`)]),
  ])
}
