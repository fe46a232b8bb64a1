import { spawn } from "node:child_process"
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "./free-port.ts"
import { until } from "./until.ts"
import { findWebServer, type WebServerBinary } from "./web-server-binary.ts"

/** A running web server. */
export interface RunningServer {
  readonly port: number
  /** Returns the path of a log with this name. */
  logFile(name: string): string
  /** Stops the server, so that its whole log has been written. The folder with the logs remains. */
  stop(): Promise<void>
  /** Stops the server if necessary, and removes its folder. */
  remove(): Promise<void>
}

/** A log that the server writes: its name, and the line of its format. */
export type LogLines = Readonly<Record<string, string>>

/**
 * Starts nginx on a free port of 127.0.0.1 in a temporary folder. Each log is written in nginx's own format with this
 * name, or in a format line. The response to every request is "ok". Rejects with the server's error log.
 */
export async function startNginx(logs: LogLines): Promise<RunningServer> {
  const binary = await findWebServer("nginx")
  return startServer(binary, (folder, port) => {
    writeFileSync(join(folder, "nginx.conf"), nginxConf(port, logs))
    return ["-p", folder, "-c", "nginx.conf", "-e", "error.log"]
  })
}

/**
 * Starts Apache on a free port of 127.0.0.1 in a temporary folder. Each log is written in a format line. The response
 * status is 401 for all requests below /login, and 404 for all others. Rejects with the server's error log.
 */
export async function startApache(logs: LogLines): Promise<RunningServer> {
  const binary = await findWebServer("apache")
  return startServer(binary, (folder, port) => {
    writeFileSync(join(folder, "users"), "ann:{PLAIN}x\n")
    writeFileSync(join(folder, "apache.conf"), apacheConf(folder, port, binary.modules, logs))
    return ["-X", "-f", join(folder, "apache.conf")]
  })
}

/**
 * Starts a server on a free port of 127.0.0.1. `configure` writes its configuration into a temporary folder, and returns
 * the arguments of its command. Rejects with the server's output and error log.
 */
export async function startServer(
  { program, env }: WebServerBinary,
  configure: (folder: string, port: number) => readonly string[],
): Promise<RunningServer> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-web-server-"))
  // Apache's workers run as another user, who must be able to read the folder.
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, "temp"))
  mkdirSync(join(folder, "files"))
  const port = await freePort()
  const args = configure(folder, port)
  const output = openSync(join(folder, "output.log"), "w")
  // Caddy writes into these folders.
  const home = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
  const child = spawn(program, args, {
    env: { ...process.env, ...env, ...home },
    stdio: ["ignore", output, output],
  })
  closeSync(output)
  const onExit = (): void => void child.kill("SIGKILL")
  process.on("exit", onExit)
  let isGone = false
  const gone = new Promise<void>((resolve) => {
    for (const event of ["exit", "error"]) {
      child.once(event, () => {
        isGone = true
        process.off("exit", onExit)
        resolve()
      })
    }
  })
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM")
    await gone
  }
  const remove = async (): Promise<void> => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  }
  await until(`${program} listens on port ${port}`, async () => isGone || (await listens(port)))
  if (isGone) {
    const reasons = ["output.log", "error.log"].map((name) => textOf(join(folder, name)))
    await remove()
    throw new Error(`${program} did not start: ${reasons.join("\n").trim()}`)
  }
  return { port, logFile: (name) => join(folder, `${name}.log`), stop, remove }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true))
    socket.on("connect", () => socket.destroy())
    socket.on("error", () => resolve(false))
  })
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

function nginxConf(port: number, logs: LogLines): string {
  const names = Object.keys(logs)
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path temp/${name};`,
  )
  return `
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {}
http {
  ${temp.join("\n  ")}
  ${names
    .filter((name) => name !== "combined")
    .map((name) => `log_format ${name} '${logs[name]}';`)
    .join("\n  ")}
  ${names.map((name) => `access_log ${name}.log ${name};`).join("\n  ")}
  server {
    listen 127.0.0.1:${port};
    location / { return 200 ok; }
    location /login { return 401 no; }
  }
}
`
}

const MODULES = ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic"]

function apacheConf(folder: string, port: number, modules: string, logs: LogLines): string {
  const log = ([name, line]: readonly [string, string]): string =>
    `CustomLog "${folder}/${name}.log" "${line.replaceAll('"', '\\"')}"`
  return `
ServerRoot "${folder}"
ServerName localhost
Listen 127.0.0.1:${port}
PidFile "${folder}/apache.pid"
DefaultRuntimeDir "${folder}/temp"
ErrorLog "${folder}/error.log"
${MODULES.map((name) => `LoadModule ${name}_module "${modules}/mod_${name}.so"`).join("\n")}
DocumentRoot "${folder}/files"
${Object.entries(logs).map(log).join("\n")}
<Location "/login">
  AuthType Basic
  AuthName "test"
  AuthUserFile "${folder}/users"
  Require valid-user
</Location>
`
}
