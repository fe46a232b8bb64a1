import { describe, expect, it } from "vitest"
import { parse, parseText, testPaths } from "./sources.ts"
import { type Title, titles } from "./titles.ts"

const MOST_WORDS = 20

/** Words that cannot begin a sentence with a subject. Verbs such as "takes" are matched separately. */
const NO_SUBJECT =
  /^(?:after|also|and|at|before|by|can|cannot|does|from|has|if|in|is|may|must|never|of|on|or|over|to|when|while|with|without)\b/
/** Nouns that end with "s". Some of them are verbs, too, unless one of the words of {@link AFTER_NOUN} follows. */
const PLURALS =
  /^(?:arguments|callers|clients|columns|counters|decisions|durations|fields|messages|metrics|parts|problems|requests|rules|shares|thousands|titles|tokens|units)$/
const OFTEN_VERBS = /^(?:answers|calls|counts|keys|limits|readiness|records|refunds|reports|streams)$/
const AFTER_NOUN = /^(?:are|of|over|refused|remain|reports|that|to)$/

/** True if a title begins with a verb or a preposition, so that its subject is missing. */
function lacksSubject(title: string): boolean {
  const [first = "", second = ""] = title.replace(/[,:]/g, "").split(" ")
  if (NO_SUBJECT.test(first)) return true
  if (!/^[a-z]{2,}s$/.test(first) || PLURALS.test(first)) return false
  return !(OFTEN_VERBS.test(first) && AFTER_NOUN.test(second))
}

const shown = ({ place, groups, text }: Title): string => `${place} ${[...groups, text].join(" > ")}`
const all = titles(parse(testPaths()))

describe("the titles of tests", () => {
  it("name their subject if they are in no group", () => {
    expect(all.length).toBeGreaterThan(1_000)
    const bare = all.filter(({ groups, text }) => groups.length === 0 && lacksSubject(text))
    expect(bare.map(shown)).toEqual([])
  })

  it(`have at most ${MOST_WORDS} words, without those of their groups`, () => {
    const long = all.filter(({ text }) => text.split(/\s+/).length > MOST_WORDS)
    expect(long.map(shown)).toEqual([])
  })

  it("name the mistake that cannot happen, and not only its number in a list", () => {
    const numbered = all.filter(({ groups, text }) => /\bpitfalls?\b/i.test([...groups, text].join(" ")))
    expect(numbered.map(shown)).toEqual([])
  })

  it("are found within groups and with any modifier", () => {
    const source = parseText(
      "a.test.ts",
      `describe.each([1])("a %i", () => {\n  it.skipIf(no)(\`is \${1}.\`, () => {})\n})\ntest.each\`a\`("b", () => {})`,
    )
    expect(titles([source])).toEqual([
      { place: "a.test.ts:2", groups: ["a %i"], text: "is X." },
      { place: "a.test.ts:4", groups: [], text: "b" },
    ])
  })

  it.each([
    ["takes null as options", true],
    ["never throws", true],
    ["in a cluster, a key has a slot", true],
    ["counts a refusal once", true],
    ["counts of a rule stay exact", false],
    ["the paced fetch accepts null as options", false],
    ["paced accepts null as options", false],
  ])("that read %j lack a subject: %j", (title, isWrong) => {
    expect(lacksSubject(title)).toBe(isWrong)
  })
})
