import { readFile, stat } from "node:fs/promises"
import { extname } from "node:path"
import { RuleSourceError } from "../../errors.ts"
import { type RuleDocument, readRuleDocument } from "../rule-document.ts"
import { Slices } from "../slices.ts"
import { type FileDocuments, fileDocuments } from "./file-documents.ts"
import { FileTextError, parseJsonText } from "./file-text.ts"

/** What a file of rules holds. */
export interface FileContent {
  /** Changes whenever the file is written or replaced, but for two writes within a tick of the file system's clock. */
  readonly stamp: string
  readonly text: string
  readonly documents: FileDocuments
}

/**
 * Reads a file of rules. Yields `last` without reading when the file still has its stamp. Rejects with RuleSourceError,
 * which names the file and what to do.
 */
export async function readContent(file: string, maxBytes: number, last?: FileContent): Promise<FileContent> {
  try {
    const found = await stat(file, { bigint: true })
    if (!found.isFile()) throw new Unusable("is not a file: give the path of a file of YAML or JSON")
    if (found.size > maxBytes) {
      throw new Unusable(
        `has ${found.size} bytes, more than ${maxBytes}: shorten it, or raise the option maxBytes`,
      )
    }
    const stamp = [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(" ")
    if (stamp === last?.stamp) return last
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file))
    if (text === last?.text) return { ...last, stamp }
    return { stamp, text, documents: fileDocuments(await documentsIn(file, text)) }
  } catch (error) {
    throw new RuleSourceError(`Rules file ${JSON.stringify(file)} ${reason(file, error)}`, { cause: error })
  }
}

/** Why a file, though it can be read, holds no rules. */
class Unusable extends Error {}

/** Reads them one after the other: a file has thousands, and it is changed while requests are being decided. */
async function documentsIn(file: string, text: string): Promise<readonly RuleDocument[]> {
  const documents: RuleDocument[] = []
  const slices = new Slices()
  for (const value of text.trim() === "" ? [] : await valuesIn(file, text)) {
    documents.push(readRuleDocument(value))
    if (slices.isUsedUp) await slices.pause()
  }
  if (documents.length === 0)
    throw new Unusable("is empty: write a document with rules, or `rules: []` for none")
  return documents
}

async function valuesIn(file: string, text: string): Promise<Iterable<unknown>> {
  if (isJson(file)) return parseJsonText(text)
  // Only now: the parser of YAML takes half as long to load as all the rest of the core.
  const { yamlValues } = await import("./yaml-text.ts")
  return yamlValues(text)
}

function isJson(file: string): boolean {
  return extname(file).toLowerCase() === ".json"
}

function reason(file: string, error: unknown): string {
  if (error instanceof Unusable) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof FileTextError) return `is not ${isJson(file) ? "JSON" : "YAML"}: ${message}`
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return "does not exist: create it, or correct the path"
    case "ERR_ENCODING_INVALID_ENCODED_DATA":
      return "is not text: save it in UTF-8"
    default:
      return `cannot be read: ${message}`
  }
}
