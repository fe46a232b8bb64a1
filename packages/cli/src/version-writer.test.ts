import { readRuleFile } from "@sluice/rules"
import { expect, test } from "vitest"
import { withVersions } from "./version-writer.ts"

/** Returns the text with version 8 in each of its documents. */
async function pushed(text: string): Promise<string | undefined> {
  const { documents, problems } = await readRuleFile(text, "yaml")
  expect(problems).toEqual([])
  return withVersions(
    text,
    "yaml",
    documents.map((document) => ({ ...document, version: 8 })),
  )
}

test.each([
  [
    "a version in its place",
    "# a\nservice_id: a # b\nversion: 7 # c\nrules: []\n",
    "# a\nservice_id: a # b\nversion: 8 # c\nrules: []\n",
  ],
  [
    "a document without a version, before its first member",
    "# a\n\nservice_id: a\nrules: []\n",
    "# a\n\nversion: 8\nservice_id: a\nrules: []\n",
  ],
  [
    "a file with Windows line endings",
    "# a\r\nservice_id: a\r\nrules: []\r\n",
    "# a\r\nversion: 8\r\nservice_id: a\r\nrules: []\r\n",
  ],
  ["a flow map", "{ service_id: a, rules: [] }", "{ version: 8, service_id: a, rules: [] }"],
  ["JSON", '{\n  "service_id": "a", "rules": []}', '{\n  "version": 8, "service_id": "a", "rules": []}'],
  [
    "JSON that already has a version",
    '{"rules":[],"version":7,"service_id":"a"}',
    '{"rules":[],"version":8,"service_id":"a"}',
  ],
  ["an entry of a list", "- service_id: a\n  rules: []\n", "- version: 8\n  service_id: a\n  rules: []\n"],
  [
    "an entry that is indented by four columns",
    "-   rules: []\n    service_id: a\n",
    "-   version: 8\n    rules: []\n    service_id: a\n",
  ],
  ["a document without a service", "rules: []\n", "version: 8\nrules: []\n"],
  [
    "a version at the end of the document",
    "service_id: a\nrules: []\nversion: 1\n",
    "service_id: a\nrules: []\nversion: 8\n",
  ],
])("withVersions updates %s", async (_what, before, after) => {
  expect(await pushed(before)).toBe(after)
})

test("withVersions writes each version into its own document, and no version into documents that were not pushed", async () => {
  const text =
    "service_id: a\nrules: []\n---\n- service_id: b\n  version: 1\n  rules: []\n- service_id: c\n  rules: []\n---\nrules: []\n"
  const [a, , c] = (await readRuleFile(text, "yaml")).documents
  if (a === undefined || c === undefined) throw new Error("the file has four documents")
  const versions = [
    { ...c, version: 30 },
    { ...a, version: 10 },
  ]
  expect(await withVersions(text, "yaml", versions)).toBe(
    "version: 10\nservice_id: a\nrules: []\n---\n- service_id: b\n  version: 1\n  rules: []\n- version: 30\n  service_id: c\n  rules: []\n---\nrules: []\n",
  )
})

test.each([
  ["an anchor before the first name", "&d\n&k service_id: a\nrules: []\n"],
  ["names behind question marks", "? service_id\n: a\n? rules\n: []\n"],
  ["a version that a limit refers to", "version: &n 3\nservice_id: a\nrules: [{ limit: *n, window: 1m }]\n"],
  ["a version that service_id refers to", "version: &n 3\nservice_id: *n\nrules: []\n"],
])(
  "withVersions returns no text for %s, because an edit would make the file invalid or change its meaning",
  async (_what, text) => {
    expect(await pushed(text)).toBeUndefined()
  },
)

test.each([
  [
    "a version behind a question mark",
    "? version\n: 1\n? service_id\n: 7\n? rules\n: []\n",
    "? version\n: 8\n? service_id\n: 7\n? rules\n: []\n",
  ],
  [
    "an anchor before the map",
    "&d\nservice_id: a\nrules: []\n",
    "&d\nversion: 8\nservice_id: a\nrules: []\n",
  ],
  ["an anchor without an alias", "version: &n 1\nrules: []\n", "version: &n 8\nrules: []\n"],
])("withVersions writes the version despite %s", async (_what, before, after) => {
  expect(await pushed(before)).toBe(after)
})

test("withVersions reads and writes JSON as JSON", async () => {
  const text = '{"service_id":"a","rules":[]}'
  const versions = [{ line: 1, column: 1, version: 8 }]
  expect(await withVersions(text, "json", versions)).toBe('{"version": 8, "service_id":"a","rules":[]}')
})
