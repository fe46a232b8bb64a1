import { describe, expect, it } from "vitest"
import { html, jsonForScript, markupOf } from "./html.ts"

describe("html", () => {
  it("escapes text, also in attributes, and keeps HTML", () => {
    const inner = html`<b title="${`"x" & 'y'`}">${"</b><script>"}</b>`
    expect(markupOf(html`<p>${inner}${3}${undefined}${false}${["<", inner]}</p>`)).toBe(
      "<p>" +
        '<b title="&#34;x&#34; &#38; &#39;y&#39;">&#60;/b&#62;&#60;script&#62;</b>' +
        "3&#60;" +
        '<b title="&#34;x&#34; &#38; &#39;y&#39;">&#60;/b&#62;&#60;script&#62;</b>' +
        "</p>",
    )
  })
})

describe("jsonForScript", () => {
  it("returns text that cannot end a script element and that parses to the same value", () => {
    const value = { a: "</script><!--<script>", b: ["\u2028", "\uD800", "<"] }
    const text = markupOf(jsonForScript(value))
    expect(text).not.toContain("<")
    expect(JSON.parse(text)).toEqual(value)
  })
})
