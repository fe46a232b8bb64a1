import type { Problem } from "../../errors.ts"
import { show } from "../problems.ts"
import type { RuleDocument } from "../rule-document.ts"
import type { LoadedRules } from "../source.ts"

/** The rules of a file: for each service its own document, else the one that names no service. */
export interface FileDocuments {
  /** Those that have a document of their own. */
  readonly services: readonly string[]
  /** What is wrong with documents of which it is not known whose they are. */
  readonly problems: readonly Problem[]
  rulesOf(service: string): LoadedRules
}

/** A document with the problems as they are told: with the place of the document in the file. */
interface PlacedDocument extends RuleDocument {
  readonly index: number
}

/** What the documents of a file are together. What is wrong in one is told to its service alone. */
export function fileDocuments(read: readonly RuleDocument[]): FileDocuments {
  const documents = read.map((document, index): PlacedDocument => ({ ...document, index }))
  const own = new Map<string | undefined, PlacedDocument>()
  // Whose these are is not known, so every service is told.
  const general: Problem[] = []
  for (const document of documents) {
    const place = read.length === 1 ? "" : `[${document.index}]`
    const { service } = document
    const earlier = own.get(service)
    if (!isReadable(document)) {
      general.push(...document.problems.map((problem) => below(place, problem)))
    } else if (earlier !== undefined) {
      general.push(secondDocument(place, service, earlier.index))
    } else {
      const name = read.length === 1 || service === undefined ? place : `service ${show(service)}`
      own.set(service, { ...document, problems: document.problems.map((problem) => below(name, problem)) })
    }
  }
  return {
    services: [...own.keys()].filter((service) => service !== undefined),
    problems: general,
    rulesOf(service) {
      const document = own.get(service) ?? own.get(undefined)
      if (document === undefined) {
        const [only] = own.keys()
        // Among several a service without rules is an ordinary one; a single document was meant for whoever asks.
        const isAmiss = read.length === 1 && only !== undefined
        return { rules: [], problems: isAmiss ? [otherService(service, only)] : general }
      }
      const { rules, version, problems } = document
      return { rules, problems: [...general, ...problems], ...(version !== undefined && { version }) }
    },
  }
}

/** Whether it is known whose rules these are. */
export function isReadable({ problems }: Pick<RuleDocument, "problems">): boolean {
  return !problems.some(({ path }) => path === "" || /^(?:[sS]ervice_id|serviceId)$/.test(path))
}

/** The problem with the place of its document put before its path. */
export function below(place: string, { path, ...problem }: Problem): Problem {
  const gap = place.startsWith("service") && path !== "" ? " " : place === "" || path === "" ? "" : "."
  return { path: `${place}${gap}${path}`, ...problem }
}

/** What is wrong with a document for whose service there is an earlier one. */
export function secondDocument(place: string, service: string | undefined, earlier: number): Problem {
  const whose = service === undefined ? "without service_id" : `for service ${show(service)}`
  return {
    path: place,
    message: `is the second document ${whose}, after [${earlier}]`,
    accepted: "one document for each service",
  }
}

function otherService(service: string, only: string): Problem {
  return {
    path: "service_id",
    message: `${show(only)} is not the service ${show(service)}, so there are no rules`,
    accepted: `${show(service)}, or no service_id for every service`,
  }
}
