import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { fileRules } from "@sluice/rules"
import { describe, expect, it } from "vitest"
import { useFolder } from "./folder.ts"
import { sluice } from "./in-process.ts"

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/rules/${name}`, import.meta.url))

const { folder, file: fileOf } = useFolder()

describe("sluice rules check", () => {
  it("counts the valid services and rules, and ends with 0", async () => {
    const files = [fixture("services.yaml"), fixture("contract-list.json")]
    expect(await sluice(["rules", "check", ...files])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^4 services, 5 rules: ok\n$/m),
      err: "",
    })
    const one = fileOf("one.yaml", "service_id: a\nrules: { field: ip, limit: 5, window: 1m }\n")
    expect((await sluice(["rules", "check", one])).out).toBe("1 service, 1 rule: ok\n")
  })

  it("notes each rule without a field, which counts the whole service", async () => {
    const [services, list] = [fixture("services.yaml"), fixture("contract-list.json")]
    const { out } = await sluice(["rules", "check", services, list])
    const said = "is missing, so all requests of the service share this limit"
    const accepted = '    accepted: "service" to make this explicit, or "ip" to limit each client address'
    expect(out.split("\n")).toEqual([
      `${services}:8:7: note: service "7" rules[0].field: ${said}`,
      accepted,
      `${list}:11:5: note: rules[1].field: ${said}`,
      accepted,
      "4 services, 5 rules: ok",
      "",
    ])
    const json = JSON.parse((await sluice(["rules", "check", "--json", services])).out)
    expect(json).toMatchObject({ ok: true, problems: [], warnings: [] })
    expect(json.notes).toMatchObject([{ file: services, line: 8, path: 'service "7" rules[0].field' }])
  })

  it("prints every problem with file, line, column, path and accepted values, and ends with 1", async () => {
    const file = fixture("many-mistakes.yaml")
    const { code, out, err } = await sluice(["rules", "check", file, fixture("services.yaml")])
    expect({ code, err }).toEqual({ code: 1, err: "" })
    const lines = out.split("\n")
    expect(lines[0]).toBe(
      `${file}:2:1: verison: "verison" is not a member of a rule document; did you mean "version"?`,
    )
    expect(lines).toContain(
      `${file}:5:35: rules[0].rate.unit: "month" is not a unit; use "limit" and "per": "month" instead of a rate`,
    )
    expect(lines).toContain('    accepted: "second", "minute", "hour", "day", "week"')
    expect(lines.filter((line) => line.startsWith(file))).toHaveLength(8)
    expect(out).toMatch(/\n8 problems in 1 of 2 files\n$/)
    expect((await sluice(["rules", "check", file])).out).toMatch(/\n8 problems in 1 file\n$/)
  })

  it("prints the same problems as JSON with --json", async () => {
    const file = fixture("limit-zero.yaml")
    const wrong = await sluice(["rules", "check", file, "--json"])
    expect(wrong).toMatchObject({ code: 1, err: "" })
    expect(JSON.parse(wrong.out)).toEqual({
      ok: false,
      services: 1,
      rules: 0,
      problems: [
        {
          file,
          line: 1,
          column: 10,
          path: "rules.limit",
          rule: expect.any(String),
          message: "0 is not a limit",
          accepted: expect.stringContaining("positive"),
        },
      ],
      warnings: [],
      notes: [],
    })
    const right = await sluice(["rules", "check", "--json", "-"], {
      stdin: "rules: { field: ip, limit: 5, window: 1m }",
    })
    expect(JSON.parse(right.out)).toEqual({
      ok: true,
      services: 1,
      rules: 1,
      problems: [],
      warnings: [],
      notes: [],
    })
  })

  it("warns of a window without a unit if it looks too small, but does not count it as a problem", async () => {
    const rules =
      "rules:\n  - { limit: 1, window: x }\n  - { name: a, limit: 5, window: 60 }\n" +
      "  - { name: b, limit: 5, window: 60 ms }\n  - { name: c, limit: 5, window: 1000 }\n"
    const both = fileOf("both.yaml", rules)
    const doubt = (place: string) =>
      `${place}: 60 without a unit means milliseconds\n    accepted: "60 seconds", or "60 ms" if you mean milliseconds\n`
    const wrong = await sluice(["rules", "check", both])
    expect(wrong.out).toContain(doubt(`${both}:3:26: warning: rules[1].window`))
    expect(wrong.out).toMatch(/\n1 problem in 1 file\n$/)

    const doubtful = fileOf("doubtful.yaml", "service_id: a\nrules: { field: ip, limit: 5, window: 60 }\n")
    expect(await sluice(["rules", "check", doubtful])).toEqual({
      code: 0,
      out: `${doubt(`${doubtful}:2:31: warning: rules.window`)}1 service, 1 rule: ok, with 1 warning\n`,
      err: "",
    })
    const json = await sluice(["rules", "check", doubtful, "--json"])
    expect(json).toMatchObject({ code: 0, err: "" })
    expect(JSON.parse(json.out)).toMatchObject({
      ok: true,
      problems: [],
      warnings: [{ file: doubtful, line: 2, column: 31, path: "rules.window" }],
    })
  })

  it("warns of a method that Node does not know and suggests a similar method, but reports no problem", async () => {
    const file = fileOf(
      "methods.yaml",
      "rules:\n  - { field: ip, limit: 5, window: 1m, match: { methods: [get, PSOT] } }\n" +
        "  - { field: ip, limit: 5, window: 60, match: { methods: [X-GATEWAY] } }\n",
    )
    const { code, out } = await sluice(["rules", "check", file])
    expect(code).toBe(0)
    expect(out.split("\n").filter((line) => line.startsWith(file))).toEqual([
      `${file}:2:64: warning: rules[0].match.methods[1]: "PSOT" is not an HTTP method that Node knows; did you mean "POST"?`,
      `${file}:3:28: warning: rules[1].window: 60 without a unit means milliseconds`,
      `${file}:3:59: warning: rules[1].match.methods[0]: "X-GATEWAY" is not an HTTP method that Node knows`,
    ])
  })

  it("warns of a path segment in braces, because it is not a parameter", async () => {
    const match = "match: { path: '/a/{id}', methods: [PSOT] }"
    const file = fileOf("paths.yaml", `rules:\n  - { name: a, limit: 5, window: 1m, ${match} }\n`)
    const { code, out } = await sluice(["rules", "check", file])
    expect(code).toBe(0)
    const doubt = '"{id}" is the optional text "id", not a parameter; did you mean ":id"?'
    expect(out).toContain(`${file}:2:47: warning: rules[0].match.path: ${doubt}\n`)
    expect(out).toContain("rules[0].match.methods[0]")
  })

  it("reads standard input for -, YAML or JSON", async () => {
    const yaml = await sluice(["rules", "check", "-"], { stdin: "\u00e4: 1\nrules: []\n" })
    expect(yaml.out).toContain('standard input:1:1: ["\u00e4"]: "\u00e4" is not a member')
    const json = await sluice(["rules", "check", "-"], { stdin: '{"rules":[]}' })
    expect(json).toEqual({ code: 0, out: "1 service, 0 rules: ok\n", err: "" })
    expect((await sluice(["rules", "check", "-"])).out).toContain("standard input:1:1: is empty")
  })

  it("is strict about JSON in files named .json, in upper or lower case", async () => {
    expect((await sluice(["rules", "check", fileOf("a.JSON", "rules: []")])).out).toContain("is not JSON")
    expect((await sluice(["rules", "check", fileOf("a.yaml", "rules: []")])).code).toBe(0)
  })

  it("accepts files up to the size limit of fileRules, and ends with 2 for a larger file without --max-bytes", async () => {
    const rules = "rules: { limit: 5, window: 1m }\n#"
    const [most, more] = [2 ** 20, 2 ** 20 + 1].map((size) => fileOf(`${size}.yaml`, rules.padEnd(size, "x")))
    await fileRules(most as string).load("a")
    expect((await sluice(["rules", "check", most as string])).code).toBe(0)
    await expect(fileRules(more as string).load("a")).rejects.toThrow("more than 1048576")
    const refused = (name: string, bytes: number) => ({
      code: 2,
      out: "",
      err: `error: ${name} has more than ${bytes} bytes: shorten it, or raise --max-bytes; apps that load it with fileRules need a higher maxBytes, too\n`,
    })
    expect(await sluice(["rules", "check", more as string])).toEqual(refused(more as string, 2 ** 20))
    const stdin = rules.padEnd(2 ** 20 + 1, "x")
    expect(await sluice(["rules", "check", "-"], { stdin })).toEqual(refused("standard input", 2 ** 20))
    const raised = ["rules", "check", more as string, "--max-bytes", String(2 ** 20 + 1)]
    expect((await sluice(raised)).code).toBe(0)
    expect(await sluice(["rules", "check", "-", "--max-bytes", "9"], { stdin })).toEqual(
      refused("standard input", 9),
    )
    expect(await sluice(["rules", "check", "-", "--max-bytes", "1MB"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("argument '1MB' is invalid. Expected a whole number, 1 or more."),
    })
  })

  it.skipIf(process.platform === "win32")("rejects a device that never ends", async () => {
    expect((await sluice(["rules", "check", "/dev/zero"])).err).toContain(
      "/dev/zero has more than 1048576 bytes",
    )
  })

  it("ends with 2 for a file that cannot be read, and explains what to do", async () => {
    const missing = join(folder, "missing.yaml")
    expect(await sluice(["rules", "check", missing])).toEqual({
      code: 2,
      out: "",
      err: `error: ${missing} does not exist: correct the path\n`,
    })
    expect((await sluice(["rules", "check", folder])).err).toContain(
      "is a folder: give the path of a YAML or JSON file",
    )
    expect((await sluice(["rules", "check", fixture("not-utf-8.yaml")])).err).toContain(
      "is not UTF-8 text: save it as UTF-8",
    )
    expect((await sluice(["rules", "check", `${missing}\0`])).err).toContain("cannot be read: ")
    expect(JSON.parse((await sluice(["rules", "check", missing, "--json"])).out)).toEqual({
      ok: false,
      error: { code: "SLUICE_USAGE", message: `${missing} does not exist: correct the path` },
    })
  })

  it("escapes invisible characters, even in file names", async () => {
    const file = fileOf("\u001b[31mred.yaml", 'rules: !\u202ea []\n"\u009b31m": 1\n')
    const { out } = await sluice(["rules", "check", file])
    const input = await sluice(["rules", "check", "-"], { stdin: 'rules: []\n"\u009b31m\\e": "\\u202e"\n' })
    const json = await sluice(["rules", "check", file, "--json"])
    for (const text of [out, input.out, json.out]) {
      expect(text).toMatch(/\\u/)
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
    }
    expect(out).toContain("\\u{1b}[31mred.yaml:1:9: ")
    expect(JSON.parse(json.out).problems[0].file).toBe(file)
  })

  it("prints colors in a terminal unless NO_COLOR is set", async () => {
    const text = "rules: { field: ip, limit: 5, window: 1m }\n"
    const argv = ["rules", "check", fileOf("good.yaml", text)]
    expect((await sluice(argv, { isTTY: true })).out).toBe("\u001b[32m1 service, 1 rule: ok\u001b[0m\n")
    expect((await sluice(argv, { isTTY: true, env: { NO_COLOR: "" } })).out).toContain("\u001b")
    expect((await sluice(argv, { isTTY: true, env: { NO_COLOR: "1" } })).out).toBe("1 service, 1 rule: ok\n")
  })
})
