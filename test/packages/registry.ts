import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import { inject } from "vitest"
import { PACKAGES } from "./manifests.ts"
import type { Project } from "./project.ts"

/** The body of npm's request to publish a version. */
interface Publication {
  readonly name: string
  readonly versions: Readonly<Record<string, object>>
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>
}

/** A package registry on this machine. The registry contains only packages that were published to it. */
export interface Registry {
  /** The registry's URL, which ends with a slash. */
  readonly url: string
  /** The names of the published packages, in the order of publication. */
  readonly published: readonly string[]
  stop(): Promise<void>
}

/** Starts a registry on a free port. Packages are published and installed without an account. */
export async function startRegistry(): Promise<Registry> {
  const packages = new Map<string, Publication>()
  const server = createServer(async (request, response) => {
    const [name = "", file] = decodeURIComponent(request.url?.slice(1) ?? "").split("/-/")
    if (request.method === "PUT") {
      packages.set(name, await publicationIn(request))
      return response.writeHead(201).end("{}")
    }
    const found = packages.get(name)
    if (found === undefined) return response.writeHead(404).end("{}")
    if (file === undefined) return response.end(JSON.stringify({ ...found, _attachments: undefined }))
    const { data = "" } = found._attachments[file] ?? {}
    return response.end(Buffer.from(data, "base64"))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    get published() {
      return [...packages.keys()]
    },
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}

/** Publishes all packages from a project, whose settings then name the registry. */
export async function publishAll(project: Project, { url }: Registry): Promise<void> {
  // npm publishes only with a token. This registry accepts any.
  const settings = `@sluice:registry=${url}\n//${new URL(url).host}/:_authToken=any\n`
  project.write(".npmrc", project.read(".npmrc") + settings)
  for (const name of PACKAGES) await publish(project, url, name)
}

/** Publishes the tarball of a package from a project. */
export async function publish(
  project: Project,
  url: string,
  name: string,
  ...options: string[]
): ReturnType<Project["run"]> {
  const file = inject("tarballs")[name]?.file ?? ""
  return project.run("npm", "publish", file, `--registry=${url}`, "--access=public", ...options)
}

async function publicationIn(request: IncomingMessage): Promise<Publication> {
  return JSON.parse((await buffer(request)).toString())
}
