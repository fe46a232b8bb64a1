import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import plotStyle from "uplot/dist/uPlot.min.css?text"
import license from "uplot/LICENSE?text"
import base from "../../../../pages/base.css?text"
import script from "../page/main.ts?script"
import html from "../page/page.html?text"
import style from "../page/style.css?text"

/** A file of the page. */
export interface PageFile {
  readonly type: string
  readonly etag: string
  readonly body: Buffer
  readonly gzipped: Buffer
}

let files: ReadonlyMap<string, PageFile> | undefined

/** Returns the files of the page by their paths. Compresses the files once, for the first visitor. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  files ??= new Map([
    ["/", pageFile("text/html", html)],
    ["/page.js", pageFile("text/javascript", `/*\n${license}*/\n${script}`)],
    ["/page.css", pageFile("text/css", `${plotStyle}\n${base}\n${style}`)],
  ])
  return files
}

function pageFile(type: string, text: string): PageFile {
  const etag = `W/"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`
  return { type: `${type}; charset=utf-8`, etag, body: Buffer.from(text), gzipped: gzipSync(text) }
}
