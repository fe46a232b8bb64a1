import type { Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import {
  locate,
  type MemberProblem,
  type Pausable,
  pausableDocument,
  type UnlocatedDocument,
} from "@sluice/core/rules"
import { type TextFormat, valuesIn } from "../text/document-text.ts"
import type { TextPlace } from "../text/text-places.ts"

/** A problem in a rules file, with the place of the member's name or of the list entry. */
export interface FileProblem extends Problem {
  /** Line number, from 1. */
  readonly line: number
  /** Column number, from 1, in UTF-16 units as editors count. */
  readonly column: number
}

/** A document in the text of a file, without its invalid parts. */
export interface ReadDocument extends Omit<UnlocatedDocument, "problems"> {
  /** True if the service of the rules is known. */
  readonly isReadable: boolean
  readonly problems: readonly FileProblem[]
  /** The problem that reports an earlier document for the same service. Absent if there is no earlier document. */
  readonly duplicate?: FileProblem
  /** Returns a problem, warning or note of the document with its place in the text. */
  placed(problem: MemberProblem): FileProblem
  /**
   * Returns the place where the document begins. A method, because finding a place in JSON takes much longer than
   * parsing the JSON.
   */
  start(): TextPlace
}

/** Reads the documents in a text rule by rule. Throws FileTextError if the text is not YAML or JSON. */
export function* documentsIn(text: string, format: TextFormat): Pausable<readonly ReadDocument[]> {
  const all = []
  for (const { value, placeOf } of valuesIn(text, format)) {
    all.push({ placeOf, ...(yield* pausableDocument(value)) })
    yield
  }
  const first = new Map<string | undefined, number>()
  return all.map(({ placeOf, problems, ...document }, index): ReadDocument => {
    const { service } = document
    const isReadable = !problems.some(isAboutService)
    const place = all.length === 1 ? "" : `[${index}]`
    const name = place === "" || service === undefined ? place : `service ${show(service)}`
    const placed = (problem: MemberProblem): FileProblem => ({
      ...below(name, locate("", problem)),
      ...placeOf(problem.path),
    })
    const earlier = first.get(service)
    const start = (): TextPlace => placeOf([])
    if (isReadable && earlier === undefined) first.set(service, index)
    return {
      ...document,
      isReadable,
      problems: problems.map(placed),
      ...(isReadable &&
        earlier !== undefined && { duplicate: { ...duplicateOf(place, service, earlier), ...start() } }),
      placed,
      start,
    }
  })
}

function isAboutService({ path }: MemberProblem): boolean {
  return path.length === 0 || (path.length === 1 && /^(?:[sS]ervice_id|serviceId)$/.test(String(path[0])))
}

/** Returns the problem with its document's place prepended to its path. */
function below(place: string, { path, ...problem }: Problem): Problem {
  const gap = place.startsWith("service") && path !== "" ? " " : place === "" || path === "" ? "" : "."
  return { path: `${place}${gap}${path}`, ...problem }
}

function duplicateOf(place: string, service: string | undefined, earlier: number): Problem {
  const whose = service === undefined ? "without service_id" : `for service ${show(service)}`
  return {
    path: place,
    message: `is the second document ${whose}, after [${earlier}]`,
    accepted: "one document for each service",
  }
}
