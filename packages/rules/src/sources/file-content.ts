import { type BigIntStats, readFileSync, statSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { extname } from "node:path"
import { RuleSourceError } from "@sluice/core"
import { atOnce, inSlices, type Pausable } from "@sluice/core/rules"
import type { TextFormat } from "../text/document-text.ts"
import { FileTextError } from "../text/json-text.ts"
import { type FileDocuments, fileDocuments } from "./file-documents.ts"
import { documentsIn } from "./read-documents.ts"

/** The content of a rules file. */
export interface FileContent {
  /**
   * Changes whenever the file is written or replaced, except for two writes within a tick of the file system's clock.
   */
  readonly stamp: string
  readonly text: string
  readonly documents: FileDocuments
}

/**
 * Reads a file of rules. Returns `last` without reading if the file's stamp has not changed. Rejects with
 * RuleSourceError, which names the file and what to do.
 */
export async function readContent(file: string, maxBytes: number, last?: FileContent): Promise<FileContent> {
  try {
    const stamp = stampOf(await stat(file, { bigint: true }), maxBytes)
    if (stamp === last?.stamp) return last
    // Parse in slices, because a file may contain thousands of rules and can change while requests are being decided.
    return await inSlices(parse(file, stamp, await readFile(file), last))
  } catch (error) {
    throw sourceError(file, error)
  }
}

/**
 * Reads a file as `readContent` does, but synchronously, for the first load of a required file. Throws RuleSourceError.
 */
export function readContentSync(file: string, maxBytes: number, last?: FileContent): FileContent {
  try {
    const stamp = stampOf(statSync(file, { bigint: true }), maxBytes)
    if (stamp === last?.stamp) return last
    return atOnce(parse(file, stamp, readFileSync(file), last))
  } catch (error) {
    throw sourceError(file, error, true)
  }
}

/** The reason why a readable file does not contain rules. */
class Unusable extends Error {}

function stampOf(found: BigIntStats, maxBytes: number): string {
  if (!found.isFile()) throw new Unusable("is not a file: give the path of a YAML or JSON file")
  if (found.size > maxBytes) {
    throw new Unusable(
      `has ${found.size} bytes, more than ${maxBytes}: shorten it, or raise the option maxBytes`,
    )
  }
  return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(" ")
}

/** Parses the documents rule by rule. */
function* parse(file: string, stamp: string, bytes: Uint8Array, last?: FileContent): Pausable<FileContent> {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  if (text === last?.text) return { ...last, stamp }
  const documents = yield* documentsIn(text, formatOf(file))
  if (documents.length === 0)
    throw new Unusable("is empty: write a document with rules, or `rules: []` for none")
  return { stamp, text, documents: fileDocuments(documents, file, last?.documents.expected) }
}

function formatOf(file: string): TextFormat {
  return extname(file).toLowerCase() === ".json" ? "json" : "yaml"
}

function sourceError(file: string, cause: unknown, isRequired = false): RuleSourceError {
  const message = `Rules file ${JSON.stringify(file)} ${reason(file, cause, isRequired)}`
  const place = cause instanceof FileTextError ? cause.place : undefined
  const wasRead = cause instanceof FileTextError || cause instanceof Unusable
  // The message and the problem already contain all details. With a cause, Node would print them twice.
  return wasRead
    ? new RuleSourceError(message, { problems: [{ path: "", message: cause.message, ...place }] })
    : new RuleSourceError(message, { cause })
}

function reason(file: string, error: unknown, isRequired: boolean): string {
  if (error instanceof Unusable) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof FileTextError) return `is not ${formatOf(file).toUpperCase()}: ${message}`
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return `does not exist: create it, or correct the path${isRequired ? ". If it may appear later, give fileRules the option required: false" : ""}`
    case "ERR_ENCODING_INVALID_ENCODED_DATA":
      return "is not UTF-8 text: save it as UTF-8"
    default:
      return `cannot be read: ${message}`
  }
}
