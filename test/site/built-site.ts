import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"
import { promisify } from "node:util"
import { ROOT } from "../docs/documents.ts"

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
}

/** The site, built from `docs` into a temporary folder, and served as by a static host. */
export interface BuiltSite {
  readonly folder: string
  /** The address without a slash at the end. */
  readonly origin: string
  stop(): Promise<void>
}

/** Builds the site with the command of `pnpm site:build`, and serves it on a free port of this machine. */
export async function buildSite(): Promise<BuiltSite> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-site-"))
  await promisify(execFile)(
    join(ROOT, "node_modules/.bin/vitepress"),
    ["build", "docs", "--outDir", folder, "--logLevel", "error"],
    { cwd: ROOT },
  )
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname)
    const file = [path, `${path}.html`, `${path}index.html`]
      .map((name) => join(folder, name))
      .find((name) => extname(name) !== "" && name.startsWith(folder) && existsSync(name))
    response.writeHead(file === undefined ? 404 : 200, {
      "content-type": TYPES[extname(file ?? ".html")] ?? "",
      // Otherwise, each page would load what it has in common with the others, and the pages it links to, again.
      "cache-control": "max-age=3600",
    })
    response.end(readFileSync(file ?? join(folder, "404.html")))
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  return {
    folder,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
