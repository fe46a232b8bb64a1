import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it, type TestContext } from "vitest"
import { blocksTestedBy } from "../docs/shown.ts"
import { type Started, startService, TWO_SERVICES } from "./started.ts"

// Runs the clients of docs/service/calls.md with the versions of Python, Go and protoc on this machine. If a tool is
// missing, logs what is not tested and how to install the tool. Nothing is downloaded, because all libraries are
// available as Debian packages.

const [pythonCommands, pythonProgram, goCommands] = blocksTestedBy(
  "test/service/other-languages.test.ts",
  "docs/service/calls.md",
  3,
).map(({ text }) => text) as [string, string, string]
const GO_PROGRAMS = fileURLToPath(new URL("../../examples/src/service/go", import.meta.url))

const PROTO = fileURLToPath(new URL("../../packages/service/proto", import.meta.url))
/** A cache for the compiled libraries, because compiling them takes a minute. */
const GOCACHE = fileURLToPath(new URL("../../node_modules/.cache/sluice-go", import.meta.url))
const PLACES = ["/usr/bin/python3", "python3"]
const run = promisify(execFile)
let started: Started
let folder: string

beforeAll(async () => {
  started = await startService(TWO_SERVICES)
  folder = mkdtempSync(join(tmpdir(), "sluice-languages-"))
})
afterAll(async () => {
  await started.stop()
  rmSync(folder, { recursive: true, force: true })
})

const inFolder = (env: NodeJS.ProcessEnv = {}) => ({
  cwd: folder,
  timeout: 120_000,
  env: { ...process.env, ...env },
})

/** Returns the first program that runs with these arguments. If no program runs, logs the reason and skips the test. */
async function firstThatRuns(
  programs: readonly string[],
  args: readonly string[],
  { skip }: TestContext,
  advice: string,
): Promise<string> {
  for (const program of programs) {
    try {
      await run(program, [...args], inFolder())
      return program
    } catch {
      // Try the next program.
    }
  }
  console.warn(`Not tested: ${advice}`)
  return skip(advice)
}

/** Inserts the address of the service into a program. */
function placed(program: string): string {
  return program.replaceAll("127.0.0.1:50051", started.grpc).replaceAll("timeout=0.5", "timeout=60")
}

/** Finds the line of a block that begins with `start`, and returns the words that follow. */
function argumentsOf(commands: string, start: string): string[] {
  const lines = commands.replace(/\s*\\\n\s*/g, " ").split("\n")
  const line = lines.find((each) => each.startsWith(start)) ?? ""
  return line.slice(start.length).trim().split(" ")
}

it("the generated Python client for gRPC reports five admitted requests, and refuses the sixth", async (context) => {
  const advice = "gRPC for Python: install python3-grpcio, protobuf-compiler and protobuf-compiler-grpc"
  const python = await firstThatRuns(PLACES, ["-c", "import grpc"], context, advice)
  cpSync(PROTO, join(folder, "proto"), { recursive: true })
  const args = argumentsOf(pythonCommands, "python3 -m grpc_tools.protoc")
  expect(args).toContain("sluice/v1/rate_limiter.proto")
  // Use protoc, because the grpc_tools of Debian 12 do not support optional fields. Both programs take the same
  // arguments.
  const plugin = "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin"
  await run(python, ["-m", "grpc_tools.protoc", ...args], inFolder()).catch(() =>
    firstThatRuns(["protoc"], [plugin, ...args], context, advice),
  )
  writeFileSync(join(folder, "ask.py"), placed(pythonProgram))
  const { stdout } = await run(python, ["ask.py"], inFolder())
  expect(stdout.trim().split("\n")).toEqual([
    ...[4, 3, 2, 1, 0].map((left) => `True 0 ${left}`),
    "False 429 0",
  ])
})

it("the Go client is generated as a package of the module, and the program that uses it compiles", async (context) => {
  const advice =
    "gRPC for Go: install golang-go, golang-google-grpc-dev, protobuf-compiler, protoc-gen-go-1-5 and protoc-gen-go-grpc"
  // Without modules, Go uses the libraries of Debian's packages and needs no network. Two of these old libraries are
  // incompatible at run time, so the program is only compiled.
  const path = join(folder, "go")
  const shop = join(path, "src/example.com/shop")
  mkdirSync(shop, { recursive: true })
  cpSync(PROTO, join(shop, "proto"), { recursive: true })
  const env = { GO111MODULE: "off", GOPATH: `${path}:/usr/share/gocode`, GOCACHE }
  const settings = { ...inFolder(env), cwd: shop, timeout: 600_000 }
  const args = argumentsOf(goCommands, "protoc ")
  expect(args).toContain("sluice/v1/rate_limiter.proto")
  await firstThatRuns(["go"], ["version"], context, advice)
  try {
    await run("go", ["list", "google.golang.org/grpc", "google.golang.org/protobuf/proto"], settings)
    await run("protoc", args, settings)
  } catch {
    console.warn(`Not tested: ${advice}`)
    context.skip(advice)
  }
  cpSync(GO_PROGRAMS, shop, { recursive: true })
  expect((await run("gofmt", ["-l", "main.go", "settle.go"], settings)).stdout).toBe("")
  await run("go", ["vet", "."], settings)
}, 600_000)
