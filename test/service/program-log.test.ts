import { spawn } from "node:child_process"
import { closeSync, existsSync, openSync } from "node:fs"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { expect, it, onTestFinished } from "vitest"
import { freePort } from "../servers/free-port.ts"
import { until } from "../servers/until.ts"
import { post } from "./post.ts"
import { rulesFile } from "./rules-file.ts"

const BIN = fileURLToPath(new URL("../../packages/service/bin/sluice-service.js", import.meta.url))
const rules = rulesFile("service_id: a\nrules: [{ name: r, field: user_id, limit: 1, window: 1m }]\n")
/** The Linux device that behaves like a full disk. */
const FULL = "/dev/full"

it.runIf(existsSync(FULL))(
  `sluice-service decides, registers and drains when its log cannot be written (by ${FULL})`,
  async () => {
    const [http, operations] = [await freePort(), await freePort()].map((port) => `127.0.0.1:${port}`)
    const log = openSync(FULL, "w")
    const ports = ["--grpc", "127.0.0.1:0", "--http", `${http}`, "--operations", `${operations}`]
    const child = spawn(process.execPath, [BIN, ...ports, "--rules", rules], {
      env: { PATH: process.env.PATH ?? "", HOME: tmpdir() },
      stdio: ["ignore", log, "pipe"],
    })
    closeSync(log)
    onTestFinished(() => void child.kill("SIGKILL"))
    let err = ""
    child.stderr?.on("data", (text: Buffer) => {
      err += text
    })
    const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })))
    await until("it is ready", async () => (await fetch(`http://${operations}/readyz`)).ok)
    const call = async (name: string, body: object) =>
      (await post({ http: `http://${http}` }, `/sluice.v1.RateLimiter/${name}`, body)).body
    const register = (version: string) =>
      call("RegisterService", {
        service: "b",
        version,
        rules: [{ name: "s", field: "user_id", rate: { requestsPerUnit: 1, unit: "minute" } }],
      })
    // Each call writes one line to the log.
    for (const version of ["0", "1", "2"]) expect(await register(version)).toMatchObject({ error: "" })
    const asked = []
    for (let i = 0; i < 2; i++) {
      asked.push(
        (await call("ShouldForwardRequest", { service: "a", request: '{"user_id":"u"}' })).shouldForward,
      )
    }
    expect(asked).toEqual([true, false])
    child.kill("SIGTERM")
    expect([await ended, err]).toEqual([{ code: 0, signal: null }, ""])
  },
)
