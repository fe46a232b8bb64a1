import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { findProgram, type Places } from "./find-program.ts"

const run = promisify(execFile)

/** A web server that runs on this machine. */
export interface WebServerBinary {
  /** Absolute path of the program. */
  readonly program: string
  /** Extra environment variables: LD_LIBRARY_PATH, which an unpacked server needs. */
  readonly env: Readonly<Record<string, string>>
  /** The folder of Apache's modules. */
  readonly modules: string
}

const SERVERS = {
  nginx: {
    noun: "nginx",
    names: ["nginx"],
    packages: ["nginx"],
    path: "usr/sbin/nginx",
    modules: [],
    version: ["-v"],
    install: "Debian, Ubuntu: sudo apt-get install nginx; macOS: brew install nginx",
  },
  haproxy: {
    noun: "HAProxy with Lua",
    names: ["haproxy"],
    packages: ["haproxy"],
    path: "usr/sbin/haproxy",
    modules: [],
    version: ["-v"],
    install: "Debian, Ubuntu: sudo apt-get install haproxy; macOS: brew install haproxy",
  },
  caddy: {
    noun: "Caddy",
    names: ["caddy"],
    packages: ["caddy"],
    path: "usr/bin/caddy",
    modules: [],
    version: ["version"],
    install: "Debian, Ubuntu: sudo apt-get install caddy; macOS: brew install caddy",
  },
  apache: {
    noun: "Apache httpd",
    names: ["apache2", "httpd"],
    packages: ["apache2-bin"],
    path: "usr/sbin/apache2",
    // Folders below the root of the file system.
    modules: ["usr/lib/apache2/modules", "usr/lib64/httpd/modules", "usr/lib/httpd/modules"],
    version: ["-v"],
    install: "Debian, Ubuntu: sudo apt-get install apache2-bin",
  },
}

/** The PATH often excludes administrators' programs. */
const ADMIN_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]

/** The name of a web server or gateway that the tests use. */
export type WebServerName = keyof typeof SERVERS

/** Finds a web server or a gateway as {@link findProgram} does. */
export function findWebServer(name: WebServerName, places?: Places): Promise<WebServerBinary> {
  const { modules: folders, version, ...server } = SERVERS[name]
  return findProgram(
    {
      ...server,
      folders: ADMIN_FOLDERS,
      async inspect(program, env, root) {
        const modules = folders.map((folder) => join(root, folder)).find(existsSync)
        if (modules === undefined && folders.length > 0) return undefined
        return (await runs(program, version, env)) ? { program, env, modules: modules ?? "" } : undefined
      },
    },
    places,
  )
}

async function runs(
  program: string,
  version: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<boolean> {
  try {
    await run(program, version, { env: { ...process.env, ...env }, timeout: 10_000 })
    return true
  } catch {
    return false
  }
}
