import { readFile } from "node:fs/promises"
import { describe, expect, it } from "vitest"
import { sluice } from "./in-process.ts"

const COMMANDS = ["check", "push", "pull", "diff", "list", "remove", "create-table"]

describe("help", () => {
  it.each(COMMANDS)("of %s contains a sentence, an example and the exit codes", async (command) => {
    const { code, out, err } = await sluice(["rules", command, "--help"])
    expect({ code, err }).toEqual({ code: 0, err: "" })
    expect(out).toMatch(
      new RegExp(`^Usage: sluice rules ${command} .*\\n\\n[A-Z][^]*\\.\\n\\n(Arguments|Options):`),
    )
    expect(out).toMatch(new RegExp(`\\n\\nExample:\\n  sluice rules ${command} .*\\n\\nExit codes:\\n  0  `))
    expect(out.includes("  3  the table could not be reached")).toBe(command !== "check")
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(90)
  })

  it("lists every command, and ends with 2 if no command is given", async () => {
    const asked = await sluice(["rules", "--help"])
    for (const command of COMMANDS) expect(asked.out).toContain(`\n  ${command} `)
    expect(await sluice(["rules"])).toEqual({ code: 2, out: "", err: asked.out })
    expect(await sluice([])).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("Usage: sluice"),
    })
  })

  it("is also printed by the command help, for each command", async () => {
    const asked = await sluice(["rules", "check", "--help"])
    expect(asked.code).toBe(0)
    expect(await sluice(["help", "rules", "check"])).toEqual(asked)
    expect(await sluice(["rules", "help", "check"])).toEqual(asked)
    expect(await sluice(["help", "rules"])).toEqual(await sluice(["rules", "--help"]))
    expect(await sluice(["rules", "help"])).toEqual(await sluice(["rules", "--help"]))
    expect(await sluice(["help"])).toEqual(await sluice(["--help"]))
    for (const argv of [
      ["help", "rules", "chek"],
      ["rules", "help", "chek"],
    ]) {
      expect(await sluice(argv)).toEqual({
        code: 2,
        out: "",
        err: "error: unknown command 'chek'\n(Did you mean check?)\n",
      })
    }
  })

  it("is not printed with --version, which prints only the version", async () => {
    const { version } = JSON.parse(
      await readFile(new URL("../../packages/cli/package.json", import.meta.url), "utf8"),
    )
    expect(await sluice(["--version"])).toEqual({ code: 0, out: `${version}\n`, err: "" })
  })
})

describe("an invalid command line", () => {
  it.each([
    [["ruels"], "error: unknown command 'ruels'\n(Did you mean rules?)\n"],
    [["check", "a.yaml"], "error: unknown command 'check'\n(Did you mean rules check?)\n"],
    [["a.yaml"], "error: unknown command 'a.yaml'\n"],
    [["rules", "chek", "a"], "error: unknown command 'chek'\n(Did you mean check?)\n"],
    [["rules", "list", "--tabel", "a"], "error: unknown option '--tabel'\n(Did you mean --table?)\n"],
    [["rules", "list"], "error: --table is missing: give the name of the DynamoDB table\n"],
    [["rules", "check"], "error: missing required argument 'files'\n"],
    [
      ["rules", "list", "extra", "--table", "a"],
      "error: too many arguments for 'list'. Expected 0 arguments but got 1.\n",
    ],
    [
      ["rules", "push", "a", "--table", "t", "--if-version", "-1"],
      "error: option '--if-version <n>' argument '-1' is invalid. Expected a whole number, 0 or more.\n",
    ],
    [
      ["rules", "push", "a", "--table", "t", "--if-version", "1", "--force"],
      "error: option '--if-version <n>' cannot be used with option '--force'\n",
    ],
    [
      ["rules", "list", "--table", "rules", "--endpoint", "localhost:8000"],
      'error: --endpoint "localhost:8000" is not a URL: give one such as http://localhost:8000\n',
    ],
    [
      ["rules", "list", "--table", "rules", "--endpoint", "8000"],
      'error: --endpoint "8000" is not a URL: give one such as http://localhost:8000\n',
    ],
    [
      ["rules", "remove", "", "--table", "rules", "--force"],
      "error: command-argument value '' is invalid for argument 'service'. It is empty. If it comes from a shell variable, set the variable.\n",
    ],
    [
      ["rules", "pull", "--table", "rules", "--service", ""],
      "error: option '-s, --service <id>' argument '' is invalid. It is empty. If it comes from a shell variable, set the variable.\n",
    ],
    [
      ["rules", "remove", "checkout", "--table", "rules"],
      "error: --if-version is missing: give the version to remove (`list` shows it), or remove any version with --force\n",
    ],
  ])("%j ends with 2 and suggests what was meant", async (argv, err) => {
    expect(await sluice(argv)).toEqual({ code: 2, out: "", err })
    const json = await sluice([...argv, "--json"])
    expect({ code: json.code, err: json.err }).toEqual({ code: 2, err: "" })
    expect(JSON.parse(json.out)).toEqual({
      ok: false,
      error: { code: "SLUICE_USAGE", message: err.trimEnd().replace(/^error: /, "") },
    })
  })

  it("ends with 2 for an invalid table name", async () => {
    const { code, err } = await sluice([
      "rules",
      "list",
      "--table",
      "my rules",
      "--endpoint",
      "http://127.0.0.1:1",
    ])
    expect(code).toBe(2)
    expect(err).toMatch(/^error: Wrong options: tableName: "my rules" is not the name of a table; accepted: /)
  })

  it("treats --json after -- as a file name", async () => {
    expect((await sluice(["rules", "check", "--", "--json"])).err).toBe(
      "error: --json does not exist: correct the path\n",
    )
  })
})

describe("an internal error", () => {
  it("prints one line that explains how to report it, and a stack only if requested", async () => {
    const failure = new TypeError("no such\nthing")
    const line = "a bug in sluice: no such\nthing; please report it with the output of SLUICE_DEBUG=1"
    const argv = ["rules", "check", "-"]
    expect(await sluice(argv, { failure })).toEqual({
      code: 4,
      out: "",
      err: `error: ${line.replace("\n", "\\u{a}")}\n`,
    })
    expect((await sluice(argv, { failure, env: { SLUICE_DEBUG: "1" } })).err).toMatch(
      /\n {4}at .*usage\.test\.ts/,
    )
    expect(JSON.parse((await sluice([...argv, "--json"], { failure })).out)).toEqual({
      ok: false,
      error: { code: "SLUICE_UNEXPECTED", message: line },
    })
  })

  it("prints a thrown value that is not an error, without a stack", async () => {
    expect(await sluice(["rules", "check", "-"], { failure: "gone", env: { SLUICE_DEBUG: "1" } })).toEqual({
      code: 4,
      out: "",
      err: "error: a bug in sluice: gone; please report it with the output of SLUICE_DEBUG=1\n",
    })
  })
})
