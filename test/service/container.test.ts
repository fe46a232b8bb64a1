import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { runProgram, startProgram } from "./program.ts"
import { rulesFile } from "./rules-file.ts"

const ROOT = fileURLToPath(new URL("../../", import.meta.url))
const FOLDER = `${ROOT}packages/service`
const read = (path: string): string => readFileSync(path, "utf8")

/** Returns the instructions of each stage of a Dockerfile, with one line per instruction. */
function stagesOf(text: string): string[][] {
  const stages: string[][] = []
  const image = /^ARG NODE_IMAGE=(.*)$/m.exec(text)?.[1] ?? ""
  const joined = text
    .replaceAll("$NODE_IMAGE", image)
    .replace(/^#.*\n/gm, "")
    .replace(/\s*\\\n\s*/g, " ")
  for (const line of joined.split("\n").filter((each) => each.trim() !== "")) {
    if (line.startsWith("FROM ")) stages.push([])
    stages.at(-1)?.push(line)
  }
  return stages
}

const rules = rulesFile("rules: { limit: 1, window: 1m }\n")
let help: string
beforeAll(async () => {
  help = (await runProgram(["--help"])).out.replace(/\s+/g, " ")
})

describe("the Dockerfile", () => {
  const stages = stagesOf(read(`${FOLDER}/Dockerfile`))
  const last = stages.at(-1) ?? []
  const one = (instruction: string): string => {
    const found = last.filter((line) => line.startsWith(`${instruction} `))
    expect(found, instruction).toHaveLength(1)
    return (found[0] as string).slice(instruction.length + 1)
  }

  it("copies only files that exist and are not ignored", () => {
    const ignored = read(`${FOLDER}/Dockerfile.dockerignore`)
    const copied = stages
      .flat()
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from="))
      .flatMap((line) => line.split(" ").slice(1, -1))
    expect(copied.length).toBeGreaterThan(3)
    for (const path of copied) {
      expect(existsSync(join(ROOT, path)), path).toBe(true)
      expect(ignored.split("\n")).toContain(`!${path}`)
    }
    for (const made of ["**/node_modules", "**/dist"]) expect(ignored.split("\n")).toContain(made)
  })

  it("builds and runs in separate stages with the same image version, using the project's pnpm", () => {
    const images = stages.map(([from = ""]) => from.split(" ")[1])
    expect(images).toHaveLength(2)
    expect(new Set(images).size).toBe(1)
    expect(images[0]).toMatch(/^node:\d+\.\d+\.\d+-[\w-]+@sha256:[0-9a-f]{64}$/)
    const { packageManager } = JSON.parse(read(`${ROOT}package.json`)) as { packageManager: string }
    expect(stages[0]).toContain(`RUN npm install --global ${packageManager}`)
    expect(stages[0]?.some((line) => line.includes("--frozen-lockfile"))).toBe(true)
  })

  it("runs an existing program as an unprivileged user", () => {
    expect(one("USER")).toBe("node")
    const [node, file] = JSON.parse(one("ENTRYPOINT")) as string[]
    expect(node).toBe("node")
    expect(existsSync(join(FOLDER, file as string))).toBe(true)
  })

  it("listens on the default ports, and exposes them", () => {
    const variables = one("ENV SLUICE_GRPC_ADDRESS=0.0.0.0:50051").split(" ")
    expect(variables).toHaveLength(2)
    const ports = ["SLUICE_GRPC_ADDRESS=0.0.0.0:50051", ...variables].map((text) => {
      const [name, address] = text.split("=") as [string, string]
      const port = address.split(":")[1] as string
      expect(help).toContain(`(default: 127.0.0.1:${port}) (env: ${name})`)
      return port
    })
    expect(one("EXPOSE").split(" ")).toEqual(ports)
    expect(one("HEALTHCHECK")).toContain(`http://127.0.0.1:${ports[2]}/livez`)
  })

  it("has a health check that succeeds only while the program runs", async () => {
    const [, script = ""] = /CMD (\[.*\])$/.exec(one("HEALTHCHECK")) ?? []
    const [, ...args] = JSON.parse(script) as string[]
    const program = await startProgram(["--rules", rules])
    const check = () =>
      spawnSync(
        process.execPath,
        args.map((arg) => arg.replace("http://127.0.0.1:8081", program.operations)),
        { timeout: 50_000 },
      ).status
    expect(check()).toBe(0)
    await program.stop()
    expect(check()).toBe(1)
  })
})
