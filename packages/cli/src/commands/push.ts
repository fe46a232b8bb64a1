import { InvalidRuleError, RuleSourceError } from "@sluice/core"
import { RuleConflictError } from "@sluice/rules"
import { type VersionedDocument, writeVersions } from "../file-versions.ts"
import type { Io } from "../io.ts"
import { errorLines, type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { documentsOf, type OwnedDocument, type ReadOptions, readRulesFile } from "../rules-file.ts"
import { type Registry, type TableOptions, withTable } from "../table.ts"
import { UsageError } from "../usage-error.ts"
import { changeLines, metadataLines } from "./change-lines.ts"
import { refusal, warningLines } from "./check.ts"
import { type Compared, compare, comparedValue, isEqual } from "./diff.ts"

/** Options of `sluice rules push`. */
export interface PushOptions extends TableOptions, ReadOptions {
  readonly service?: readonly string[]
  readonly ifVersion?: number
  readonly force?: boolean
  readonly dryRun?: boolean
  readonly write?: boolean
}

type State = "registered" | "unchanged" | "conflict" | "failed" | "would register" | "not tried"

/** The result for one document. */
interface Pushed extends Compared {
  readonly state: State
  /** The version in the table after the push; undefined if it is unknown. */
  readonly version?: number
  /** Why it failed. */
  readonly error?: RuleSourceError | InvalidRuleError
}

/**
 * Runs `sluice rules push FILE --table T`: registers each document if the table still contains the version on which
 * the document is based. If any document conflicts, nothing is written. Unchanged rules are not written again.
 */
export async function push(name: string, options: PushOptions, io: Io): Promise<CommandOutcome> {
  const file = await readRulesFile(name, options, io)
  if (file.problems.length > 0) return refusal(file)
  const documents = documentsOf(file, options.service)
  if (options.ifVersion !== undefined && documents.length > 1) {
    throw new UsageError(
      `--if-version is for one service, but ${name} has ${documents.length}: choose one with --service`,
    )
  }
  if (options.write === true && file.path === undefined) {
    throw new UsageError("--write needs a file to write to: give the path of a file instead of -")
  }
  const pushed = await withTable(options, io, (registry) => pushAll(registry, documents, options))
  const isWriting = options.write === true && options.dryRun !== true
  const unwritten = isWriting ? await writeVersions(file, pushed.flatMap(versioned)) : []
  const stopping = pushed.filter(isStopping)
  return {
    exitCode:
      stopping.length === 0
        ? EXIT.ok
        : stopping.some(({ error }) => error instanceof RuleSourceError)
          ? EXIT.unreachable
          : EXIT.problems,
    json: {
      ok: stopping.length === 0,
      ...(isWriting && { written: unwritten.length === 0 }),
      services: pushed.map(pushedValue),
    },
    text: pushed.filter((each) => !isStopping(each)).flatMap(pushedLines),
    errors: stopping.flatMap((each) =>
      each.error === undefined ? conflictLines(each, name, options) : errorLines(each.error.message),
    ),
    warnings: [...warningLines(file), ...unwritten],
  }
}

async function pushAll(
  registry: Registry,
  documents: readonly OwnedDocument[],
  options: PushOptions,
): Promise<Pushed[]> {
  const planned: Pushed[] = []
  for (const document of documents) {
    planned.push(plan(compare(document, await registry.get(document.service)), options))
  }
  if (options.dryRun === true) return planned
  let isStopped = planned.some(isStopping)
  const pushed: Pushed[] = []
  for (const each of planned) {
    if (each.state !== "would register") pushed.push(each)
    else if (isStopped) pushed.push({ ...each, state: "not tried" })
    else pushed.push(await register(registry, each, options))
    isStopped ||= isStopping(pushed.at(-1) as Pushed)
  }
  return pushed
}

/** True if the documents after this one must not be registered. */
function isStopping({ state }: Pushed): boolean {
  return state === "conflict" || state === "failed"
}

function plan(compared: Compared, options: PushOptions): Pushed {
  const { found } = compared
  if (found !== undefined && isEqual(compared))
    return { ...compared, state: "unchanged", version: found.version }
  const base = baseOf(compared.document, options)
  // 0 means no rules, or rules that are stored without a version. A push without a version must not replace such
  // rules, because its author has not seen them.
  const there = base === 0 ? (found?.version ?? 0) : found?.version
  const isConflict = base !== "any" && base !== there
  return { ...compared, state: isConflict ? "conflict" : "would register" }
}

/** Returns the document with its version in the table, if the table contains the same rules. */
function versioned({ document, version }: Pushed): VersionedDocument[] {
  return version === undefined ? [] : [{ ...document, version }]
}

async function register(registry: Registry, compared: Compared, options: PushOptions): Promise<Pushed> {
  const { document } = compared
  try {
    const { version } = await registry.register(document.service, document.rules, {
      version: baseOf(document, options),
      metadata: document.metadata,
    })
    return { ...compared, state: "registered", version }
  } catch (error) {
    if (error instanceof RuleConflictError) return { ...compare(document, error.found), state: "conflict" }
    // Do not rethrow, because the documents that were already registered must still be reported.
    if (error instanceof RuleSourceError || error instanceof InvalidRuleError)
      return { ...compared, state: "failed", error }
    throw error
  }
}

/**
 * Returns the version on which the rules are based, as pulled by their owner. Undefined if the table must not contain
 * any rules.
 */
function baseOf({ version }: OwnedDocument, { force, ifVersion }: PushOptions): number | "any" | undefined {
  return force === true ? "any" : (ifVersion ?? version)
}

function pushedValue(pushed: Pushed): object {
  const { state, version, error } = pushed
  return {
    state,
    version,
    ...comparedValue(pushed),
    ...(error !== undefined && { error: { code: error.code, message: error.message } }),
  }
}

function pushedLines({ document, found, changes, metadata, state, version }: Pushed): OutputLine[] {
  const told = version === undefined ? "" : `, version ${version}`
  const was = state === "registered" && found !== undefined ? ` (was ${found.version})` : ""
  const line: OutputLine = [
    tinted("strong", document.service),
    ": ",
    tinted(state === "not tried" ? "quiet" : "good", state),
    `${told}${was}`,
  ]
  return state === "unchanged" ? [line] : [line, ...changeLines(changes), ...metadataLines(metadata)]
}

function conflictLines(pushed: Pushed, name: string, options: PushOptions): OutputLine[] {
  const { document, found, changes, metadata } = pushed
  const base = baseOf(document, options)
  const there =
    found === undefined
      ? "no longer has rules for it"
      : `has ${found.version === 0 ? "rules without a version" : `version ${found.version}`}`
  const based = (base ?? 0) === 0 ? "were written for a new service" : `are based on version ${base}`
  const next =
    found === undefined
      ? "to register them again, push with --if-version 0 or --force"
      : `to replace these rules, check them with pull, then push with --if-version ${found.version}`
  return [
    tinted(
      "bad",
      `${document.service}: not registered: the rules in ${name} ${based}, but the table ${there}`,
    ),
    ...(found === undefined
      ? []
      : ["  the push would change:", ...changeLines(changes), ...metadataLines(metadata)]),
    `  ${next}`,
  ]
}
