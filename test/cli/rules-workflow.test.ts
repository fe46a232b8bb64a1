import { execFile, execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { useFolder } from "./folder.ts"

// Runs the commands of deploy/github/rules.yaml in a repository, with the built program and a local DynamoDB. Only the
// download of the logs is replaced, because there is no S3 here.

const ROOT = fileURLToPath(new URL("../../", import.meta.url))
const workflow = parse(readFileSync(`${ROOT}deploy/github/rules.yaml`, "utf8"))
const { folder, file } = useFolder()
const repository = join(folder, "repository")

/** A step of a job: a command, or an action of GitHub. */
interface Step {
  readonly run?: string
  readonly uses?: string
}

let server: DynamoDBServer
let env: NodeJS.ProcessEnv
let registered: () => Promise<number | undefined>
let registerElsewhere: (limit: number) => Promise<unknown>
beforeAll(async () => {
  server = await startDynamoDB()
  const registry = dynamoDBRegistry({ client: server.client(), tableName: "rules" })
  await registry.createTable()
  registered = async () => (await registry.get("shop"))?.rules[0]?.limit as number | undefined
  registerElsewhere = (limit) =>
    registry.register("shop", [{ name: "per-ip", field: "ip", limit, window: "1 minute" }], {
      version: "any",
    })
  mkdirSync(join(folder, "bin"))
  program("sluice", `exec "${process.execPath}" "${ROOT}packages/cli/bin/sluice.js" "$@"`)
  // Fails unless it is called as the command of AWS expects.
  program(
    "aws",
    `[[ "$1 $2 $3 $4" == "s3 cp --recursive --no-progress" ]] && mkdir -p "$6" && cp "${folder}/logs/\${5#s3://logs/}"* "$6"`,
  )
  env = {
    PATH: `${join(folder, "bin")}:${process.env.PATH}`,
    HOME: folder,
    LOGS: "s3://logs",
    TABLE: "rules",
    AWS_ENDPOINT_URL_DYNAMODB: server.endpoint,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  }
  writeLog()
  mkdirSync(repository)
  git("init", "--quiet")
  git("commit", "--quiet", "--allow-empty", "--message", "Begin")
})

afterAll(() => server.stop())

function program(name: string, script: string): void {
  chmodSync(file(`bin/${name}`, `#!/usr/bin/env bash\n${script}\n`), 0o755)
}

/** Writes yesterday's log: 20 clients, each of which sends 4 requests in a minute. */
function writeLog(): void {
  const yesterday = new Date(Date.now() - 86_400_000)
  const day = `logs/${yesterday.toISOString().slice(0, 10).replaceAll("-", "/")}`
  mkdirSync(join(folder, day), { recursive: true })
  const lines = Array.from(
    { length: 80 },
    (_, i) => `192.0.2.${i % 20} - - [29/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5\n`,
  )
  file(`${day}/access.log`, lines.join(""))
}

function git(...args: string[]): string {
  const who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
  return execFileSync("git", [...who, ...args], { cwd: repository, encoding: "utf8" }).trim()
}

/** Commits a rule with this limit. */
function commit(limit: number | string): void {
  writeFileSync(
    join(repository, "rules.yaml"),
    `service_id: shop\nrules:\n  - { name: per-ip, field: ip, limit: ${limit}, window: 1 minute }\n`,
  )
  git("add", "rules.yaml")
  git("commit", "--quiet", "--message", `Admit ${limit} requests`)
}

/** Runs the commands of a job until one fails, as GitHub does. Resolves with the exit code and the output. */
async function run(
  job: "check" | "push",
  more: object = {},
): Promise<{ readonly code: number; readonly out: string }> {
  rmSync(join(repository, "replay.html"), { force: true })
  let out = ""
  for (const { run: command } of workflow.jobs[job].steps as Step[]) {
    if (command === undefined || command.startsWith("npm install")) continue
    const script = file("step.sh", command)
    const code = await new Promise<number>((resolve) => {
      const options = { cwd: repository, env: { ...env, BEFORE: git("rev-parse", "HEAD^"), ...more } }
      execFile("bash", ["-e", script], options, (error, stdout, stderr) => {
        out += stdout + stderr
        resolve(error === null ? 0 : Number(error.code))
      })
    })
    if (code !== 0) return { code, out }
  }
  return { code: 0, out }
}

describe("the workflow deploy/github/rules.yaml", () => {
  it("replays a new file against yesterday's log, and then each change against the previous rules", async () => {
    commit(4)
    expect(await run("check")).toMatchObject({ code: 0 })
    expect(existsSync(join(repository, "replay.html"))).toBe(true)
    commit(3)
    const { code, out } = await run("check")
    expect([code, out]).toEqual([
      1,
      expect.stringContaining("exceeded: --max-newly-refused 1%: 20 of 80, 25.0%"),
    ])
    expect(out).not.toContain("192.0.2.")
  })

  it("registers the rules of main, unless the table contains rules that main never had", async () => {
    await registerElsewhere(4)
    expect(await run("push")).toMatchObject({ code: 0 })
    expect(await registered()).toBe(3)
    await registerElsewhere(1)
    const { code, out } = await run("push")
    expect([code, out]).toEqual([1, expect.stringContaining("::error::")])
    expect(await registered()).toBe(1)
  })

  it("shows why the table cannot be read, and does not blame its rules", async () => {
    const { code, out } = await run("push", { TABLE: "missing" })
    expect(code).not.toBe(0)
    expect(out).toContain('"missing"')
    expect(out).not.toContain("::error::")
  })

  it("rejects an invalid rule before it fetches a log", async () => {
    rmSync(join(repository, "logs"), { recursive: true })
    commit('"five"')
    const { code, out } = await run("check")
    expect([code, out]).toEqual([1, expect.stringContaining("rules.yaml:3:")])
    expect(existsSync(join(repository, "logs"))).toBe(false)
  })

  it("pushes only from main after the check, and uses no stored key of AWS", () => {
    expect(workflow.on.push.branches).toEqual(["main"])
    expect(workflow.permissions).toEqual({})
    const { check, push } = workflow.jobs
    expect(push).toMatchObject({ needs: "check", if: "github.event_name == 'push'", environment: "rules" })
    for (const { permissions } of [check, push])
      expect(permissions).toEqual({ contents: "read", "id-token": "write" })
    expect(JSON.stringify(workflow)).not.toMatch(/secrets\.|access-key/)
  })
})
