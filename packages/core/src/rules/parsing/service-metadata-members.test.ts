import { describe, expect, it } from "vitest"
import { formatRuleDocument } from "../documents/format-document.ts"
import { readRuleDocument } from "../documents/rule-document.ts"
import { metadataProblems, plainMetadata } from "./service-metadata-members.ts"

const pathsOf = (value: unknown) => metadataProblems(value).map(({ path }) => path.join("."))

describe("the link of a service", () => {
  it.each([
    "https://example.com",
    "http://localhost:8080/limits#checkout",
    "https://[2001:db8::1]/a?b=c,d;e='f'&g=(h)",
    "https://example.com/caf%C3%A9",
    `https://example.com/${"x".repeat(2_028)}`,
  ])("may be %j", (link) => {
    expect(metadataProblems({ link })).toEqual([])
  })

  it.each([
    "",
    "limits",
    "//example.com",
    "ftp://example.com",
    "javascript:alert(1)",
    "https://",
    "https:///x",
    "https://example.com:99999/",
    "https://user@example.com",
    "https://user:secret@example.com/",
    'https://example.com/>; rel="stylesheet"',
    "https://example.com/a b",
    "https://example.com/\r\nSet-Cookie: a=b",
    "https://example.com/\n",
    "https://example.com/café",
    "https://example.com/\\x",
    `https://example.com/${"x".repeat(2_029)}`,
    7,
    null,
  ])("cannot be %j", (link) => {
    expect(pathsOf({ link })).toEqual(["metadata.link"])
  })
})

describe("metadata", () => {
  it("is reported with the path of each invalid member", () => {
    const long = "x".repeat(2_000)
    expect(pathsOf({ owner: "", description: long, contact: 7, lnk: "https://example.com" })).toEqual([
      ...["metadata.owner", "metadata.description", "metadata.contact", "metadata.lnk"],
    ])
    expect(pathsOf("team")).toEqual(["metadata"])
    expect(pathsOf(undefined)).toEqual([])
    expect(metadataProblems({ lnk: "x" })[0]?.message).toContain('did you mean "link"?')
  })

  it("is stored with its members in a fixed order, or omitted if it has none", () => {
    const members = Object.keys(
      plainMetadata({ link: "https://a.b", owner: "shop", contact: undefined }) ?? {},
    )
    expect(members).toEqual(["owner", "link"])
    expect(plainMetadata({})).toBeUndefined()
    expect(plainMetadata({ owner: undefined })).toBeUndefined()
  })

  it("is written into a document and read back", () => {
    const metadata = { owner: "shop", description: "pays", contact: "#shop", link: "https://a.b/c" }
    const rules = [{ field: "ip", limit: 5, window: 60_000 }]
    const document = formatRuleDocument("checkout", rules, 7, metadata)
    expect(Object.keys(document)).toEqual(["service_id", "version", "metadata", "rules"])
    expect(readRuleDocument(JSON.parse(JSON.stringify(document)))).toMatchObject({ metadata, problems: [] })
    expect(formatRuleDocument("checkout", rules, 7, {})).toEqual(formatRuleDocument("checkout", rules, 7))
  })

  it("is undefined if the document has none, and empty if the document contains an empty object", () => {
    expect(readRuleDocument({ rules: [] })).not.toHaveProperty("metadata")
    expect(readRuleDocument({ rules: [], metadata: {} })).toMatchObject({ metadata: {}, problems: [] })
  })

  it("causes a problem if it is invalid, but the rules of the document stay valid", () => {
    const read = readRuleDocument({
      metadata: { link: "x" },
      rules: [{ field: "ip", limit: 5, window: "1m" }],
    })
    expect(read.problems).toMatchObject([{ path: "metadata.link", message: '"x" is not a link' }])
    expect(read.rules).toHaveLength(1)
    expect(read).not.toHaveProperty("metadata")
    expect(() => formatRuleDocument("a", [], 1, { link: "x" })).toThrow('metadata.link: "x" is not a link')
  })
})
