const MARKUP: unique symbol = Symbol("markup")

/** A piece of HTML. Only `html` and `trusted` create such an object, and data from a log cannot imitate it. */
export interface Html {
  readonly [MARKUP]: string
}

/** A value that a template accepts. Text is escaped. `undefined` and `false` add nothing. */
export type HtmlContent = Html | string | number | undefined | false | readonly HtmlContent[]

/**
 * Creates HTML from a template. Escapes each value, so that no value can add markup, also inside a quoted attribute.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlContent[]): Html {
  return trusted(parts.map((part, i) => (i === 0 ? "" : markupOf(values[i - 1])) + part).join(""))
}

/** Marks text as HTML without escaping it. Use it only for constants of this program. */
export function trusted(markup: string): Html {
  return { [MARKUP]: markup }
}

/** Returns content as HTML text. */
export function markupOf(content: HtmlContent): string {
  if (content === undefined || content === false) return ""
  if (typeof content === "number") return String(content)
  if (typeof content === "string") return content.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
  if (MARKUP in content) return content[MARKUP]
  return content.map(markupOf).join("")
}

/**
 * Returns a value as JSON for a `<script type="application/json">` element. The result contains no `<`, so it can
 * neither end the element nor begin a comment.
 */
export function jsonForScript(value: unknown): Html {
  return trusted(JSON.stringify(value).replaceAll("<", "\\u003c"))
}
