import { afterAll, describe, expect, it } from "vitest"
import { type Block, readBlocks } from "./blocks.ts"
import { cover } from "./cover.ts"
import { stopRedis } from "./preludes/redis.ts"
import { commandLines } from "./shell/words.ts"

// Checks that the tests of documents detect mistakes.

afterAll(stopRedis)

const block = (language: string, text: string, more: Partial<Block> = {}): Block => ({
  document: "docs/page.md",
  line: 7,
  language,
  text: `${text}\n`,
  ...more,
})

describe("a document", () => {
  it("is split into blocks with their line, their language and the preceding comments", () => {
    const page = [
      "# Page",
      "<!-- run: koa, / 200 -->",
      "```ts",
      "app.use(handler)",
      "```",
      "- and",
      "",
      "  <!-- tested by: test/docs/page.test.ts -->",
      "",
      "  ~~~~http",
      "  HTTP/1.1 200 OK",
      "  ```",
      "  ~~~~",
    ]
    expect(readBlocks("docs/page.md", page.join("\n"))).toEqual([
      { document: "docs/page.md", line: 4, language: "ts", text: "app.use(handler)\n", run: "koa, / 200" },
      {
        document: "docs/page.md",
        line: 11,
        language: "http",
        text: "HTTP/1.1 200 OK\n```\n",
        testedBy: "test/docs/page.test.ts",
      },
    ])
  })

  it.each([
    ["a fence that is not closed", "```ts\nawait", /docs\/page\.md:1: the block is not closed/],
    ["a comment that is not before a block", "<!-- run: koa -->\nText", /docs\/page\.md:2: the comment/],
    ["a comment at the end of the document", "Text\n<!-- tested by: a.test.ts -->\n", /its last comment/],
  ])("is rejected if it contains %s", (_, page, message) => {
    expect(() => readBlocks("docs/page.md", page)).toThrow(message)
  })
})

describe("a block", () => {
  it.each([
    ["no language", block("", "text"), /page\.md:7: no test knows the language ""/],
    ["an unknown language", block("rust", "fn main() {}"), /no test knows the language "rust"/],
    ["output that no test compares", block("text", "done"), /page\.md:7: no test is named/],
    [
      "a test that does not exist",
      block("text", "done", { testedBy: "test/docs/nobody.test.ts" }),
      /page\.md:7: test\/docs\/nobody\.test\.ts is no test/,
    ],
    [
      "a test that is about something else",
      block("text", "done", { testedBy: "test/refunds.test.ts" }),
      /page\.md:7: test\/refunds\.test\.ts says nothing of docs\/page\.md/,
    ],
    ["invalid JSON", block("json", '{ "a": 1, }'), /page\.md:7: /],
    ["invalid YAML", block("yaml", "a: 1\nb: ]"), /page\.md:8: /],
    [
      "invalid rules",
      block("yaml", "service_id: shop\nrules:\n  - { limit: 5, windw: 1 minute }"),
      /page\.md:9: "windw" is not a member/,
    ],
    ["an unknown program", block("sh", "cd docs\nwget http://localhost"), /page\.md:8: wget/],
    ["an unknown script", block("sh", "npx -y pnpm@10.34.9 tset"), /no script "tset"/],
    ["another version of pnpm", block("sh", "npx -y pnpm@9.0.0 test"), /pnpm@9\.0\.0 is not pnpm@/],
    [
      "a folder that does not exist",
      block("sh", "cd exampels && npx -y pnpm@10.34.9 koa"),
      /exampels is not/,
    ],
    ["an unknown package", block("sh", "npm install @sluice/expres"), /@sluice\/expres/],
    ["an unknown flag", block("sh", "sluice rules list --tabel rules"), /no flag --tabel/],
    ["an unknown command", block("sh", "sluice rules pish a.yaml"), /no command "pish"/],
    ["an unknown flag of the service", block("sh", "sluice-service --rule a"), /no flag --rule/],
    [
      "a variable that the program does not read",
      block("sh", "UP=1 npx tsx examples/src/gateway/main.ts"),
      /reads no UP/,
    ],
    [
      "a curl command with another host",
      block("sh", "curl http://example.com/"),
      /curl's http:\/\/example\.com/,
    ],
    ["a port of its own", block("ts", "app.listen(3000)"), /listens on a port/],
    [
      "a Redis client of its own",
      block("ts", 'import { Redis } from "ioredis"\nconst client = new Redis()'),
      /REDIS_URL/,
    ],
    [
      "an app that responds differently",
      block("ts", 'app.use(rateLimit({ limit: 2, window: "1 minute" }))', { run: "express, / 200*3 429" }),
      /GET \/: 200\*2 429\*2, not 200\*3 429$/,
    ],
    [
      "an app that warns",
      block(
        "ts",
        'const options = { limit: 5, window: "1 minute", store: redisStore({ client }) }\napp.use(rateLimit(options))',
      ),
      /page\.md:7: SLUICE_DEFAULT_SERVICE /,
    ],
    [
      "an app that breaks",
      block("ts", 'app.get("/jobs/:id", () => {\n  throw new Error("no")\n})'),
      /GET \/jobs\/1: 500/,
    ],
  ])("with %s is reported", async (_, wrong, message) => {
    expect((await cover(wrong)).join("\n")).toMatch(message)
  })

  it.each([
    ["a wrong expected value", "const sum = 1 + 1 // => 3", /page\.md:7/],
    [
      "a wrong expected member",
      'const limiter = createLimiter({ limit: 5, window: "1 minute" })\nlimiter.status // => { service: "other" }',
      /page\.md:8/,
    ],
    ["an expected value without an expression", "if (true) { // => 3\n}", /stands behind an expression/],
    ["an unknown option", 'rateLimit({ limit: 5, windw: "1 minute" } as never)', /page\.md:7: .*windw/s],
    ["an undefined name", "ap.use(handler)", /page\.md:7: ap is not defined/],
    ["an unknown prelude", "app.use(handler)", /no prelude "nuxt"/, { run: "nuxt" }],
    ["requests that cannot be read", "app.use(handler)", /is not like/, { run: "express, GET 200" }],
  ])("with %s makes the check throw", async (_, text, message, more: Partial<Block> = {}) => {
    await expect(cover(block("ts", text, more))).rejects.toThrow(message)
  })

  it("passes if all its expected values are right", async () => {
    const text = [
      'const limiter = createLimiter({ limit: 5, window: "1 minute", field: "service" })',
      "const decision = await limiter.decide({}, { cost: 2 }) // => { allowed: true, remaining: 3 }",
      "decision.remaining // => 3",
      'decision.checks.map(({ policy }) => policy) // => ["service-1m"]',
    ]
    expect(await cover(block("ts", text.join("\n")))).toEqual([])
  })
})

describe("command lines", () => {
  it("are split into words as in a shell", () => {
    const text = [
      "# first",
      "cd docs && npx a   # then",
      "A=1 curl -s \\",
      '  -d \'{ "a": 1,',
      '  "b": 2 }\' "x y"z | cat',
      "T=$(openssl rand -hex 16) go",
    ]
    expect(commandLines(text.join("\n"))).toEqual([
      { line: 2, words: ["cd", "docs"] },
      { line: 2, words: ["npx", "a"] },
      { line: 3, words: ["A=1", "curl", "-s", "-d", '{ "a": 1,\n  "b": 2 }', "x yz"] },
      { line: 5, words: ["cat"] },
      { line: 6, words: ["T=$(openssl rand -hex 16)", "go"] },
    ])
  })

  it("are rejected if a quote is not closed", () => {
    expect(() => commandLines('echo "a')).toThrow('line 1: " is not understood')
  })
})
