import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { isProgram, oneLine, unpackedProgram } from "./debian-packages.ts"

const run = promisify(execFile)

/** A web server that runs on this machine. */
export interface WebServerBinary {
  /** Absolute path of the program. */
  readonly program: string
  /** Extra environment variables: LD_LIBRARY_PATH for an unpacked server. */
  readonly env: Readonly<Record<string, string>>
  /** The folder of Apache's modules. */
  readonly modules: string
}

interface WebServer {
  readonly packages: readonly string[]
  /** Path of the program in the packages. */
  readonly program: string
  readonly title: string
  readonly names: readonly string[]
  /** Folders of modules below the root of the file system. */
  readonly modules: readonly string[]
  readonly install: string
}

const SERVERS = {
  nginx: {
    title: "nginx",
    names: ["nginx"],
    packages: ["nginx"],
    program: "usr/sbin/nginx",
    modules: [],
    install: "Debian, Ubuntu: sudo apt-get install nginx; macOS: brew install nginx",
  },
  apache: {
    title: "Apache httpd",
    names: ["apache2", "httpd"],
    packages: ["apache2-bin"],
    program: "usr/sbin/apache2",
    modules: ["usr/lib/apache2/modules", "usr/lib64/httpd/modules", "usr/lib/httpd/modules"],
    install: "Debian, Ubuntu: sudo apt-get install apache2-bin",
  },
} satisfies Record<string, WebServer>

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/sluice-web-servers", import.meta.url))
/** Programs of administrators are often not on PATH. */
const ADMIN_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]

/**
 * Finds nginx or Apache on PATH. Otherwise unpacks the package of Debian or Ubuntu once into node_modules/.cache,
 * without root and without changing the machine. Rejects with an Error with one line that explains how to get it.
 */
export async function findWebServer(
  name: keyof typeof SERVERS,
  env: NodeJS.ProcessEnv = process.env,
  cacheFolder: string = CACHE_FOLDER,
): Promise<WebServerBinary> {
  const server: WebServer = SERVERS[name]
  const folders = [...(env.PATH ?? "").split(delimiter).filter((each) => each !== ""), ...ADMIN_FOLDERS]
  for (const program of server.names.flatMap((each) => folders.map((folder) => join(folder, each)))) {
    const modules = server.modules.map((each) => join("/", each)).find(existsSync)
    const isUsable = server.modules.length === 0 || modules !== undefined
    if (isUsable && (await runs(program, {}))) return { program, env: {}, modules: modules ?? "" }
  }
  try {
    return await unpackedProgram({
      packages: server.packages,
      cacheFolder: join(cacheFolder, name),
      async inspect(root, libraries) {
        const program = join(root, server.program)
        const modules = join(root, server.modules[0] ?? "")
        return (await runs(program, libraries)) ? { program, env: libraries, modules } : undefined
      },
    })
  } catch {
    throw oneLine(
      `No ${server.title} found, and its package cannot be unpacked: install it (${server.install})`,
    )
  }
}

async function runs(program: string, env: Readonly<Record<string, string>>): Promise<boolean> {
  if (!isProgram(program)) return false
  try {
    await run(program, ["-v"], { env: { ...process.env, ...env }, timeout: 10_000 })
    return true
  } catch {
    return false
  }
}
