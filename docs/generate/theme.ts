import {
  type Comment,
  type CommentDisplayPart,
  type DeclarationReflection,
  type ParameterReflection,
  type Reflection,
  ReflectionKind,
  type SignatureReflection,
  type SomeType,
  type UnionType,
} from "typedoc"
import { type MarkdownPageEvent, MarkdownTheme, MarkdownThemeContext } from "typedoc-plugin-markdown"
import { literalsOf } from "./literals.ts"

/** The plugin's theme without what says nothing: tables of parameters that have no word of their own, types twice. */
export class ReferenceTheme extends MarkdownTheme {
  override getRenderContext(page: MarkdownPageEvent<Reflection>): MarkdownThemeContext {
    const context = new MarkdownThemeContext(this, page, this.application.options)
    Object.assign(context.partials, partialsFor(context))
    return context
  }
}

type Partials = Pick<
  MarkdownThemeContext["partials"],
  "comment" | "inheritance" | "hierarchy" | "members" | "signature" | "declaration"
>

function partialsFor(context: MarkdownThemeContext): Partials {
  const { comment, declaration, memberContainer } = { ...context.partials }
  const text = (parts: readonly CommentDisplayPart[]) =>
    context.helpers
      .getCommentParts([...parts])
      .trim()
      .replaceAll("\n", " ")
  const typeOf = (type: SomeType) => context.partials.someType(type)

  /** A list item for each member that has a docstring: of options that are written in a signature. */
  const members = (holder: string, reflection: DeclarationReflection): string[] =>
    (reflection.children ?? []).flatMap((member) => {
      const name = `${holder}.${member.name}`
      const own = member.comment === undefined ? [] : [`- \`${name}\`: ${text(member.comment.summary)}`]
      return [...own, ...nested(name, member.type)]
    })
  const nested = (holder: string, type: SomeType | undefined): string[] =>
    literalsOf(type).flatMap((literal) => members(holder, literal))

  const parameter = ({ name, comment: own, type }: ParameterReflection): string[] => [
    ...(own === undefined ? [] : [`- \`${name}\`: ${text(own.summary)}`]),
    ...nested(name, type),
  ]

  /** A list item for each alternative of a union that has a docstring, with its members below. */
  const alternatives = ({ types, elementSummaries = [] }: UnionType): string =>
    types
      .map((type, index) => {
        const summary = elementSummaries[index]
        const [literal] = literalsOf(type)
        const shown = literal === undefined ? typeOf(type) : shapeOf(literal)
        const lines = literal === undefined ? [] : members("", literal).map((line) => line.replace("`.", "`"))
        const said = summary === undefined ? "" : `: ${text(summary)}`
        return [`- ${shown}${said}`, ...lines.map((line) => `  ${line}`)].join("\n")
      })
      .join("\n")

  return {
    // Headings of tags would be as large as those of members. What is thrown comes before the example.
    comment: (model: Comment, options = {}) => {
      model.blockTags.sort((one, other) => Number(one.tag === "@example") - Number(other.tag === "@example"))
      return comment(model, { ...options, headingLevel: undefined })
    },
    // What is inherited is shown as if it was the heir's own, which it is to a user.
    inheritance: () => "",
    hierarchy: (model) => {
      if (model.isTarget) return ""
      return `Extends ${model.types.map((type) => typeOf(type)).join(", ")}.`
    },
    members: (models, options) =>
      models.map((member) => memberContainer.call(context, member, options)).join("\n\n"),
    signature: (model: SignatureReflection, options) => {
      const said = model.comment ?? (options.multipleSignatures ? undefined : model.parent.comment)
      const parts = [
        options.hideTitle ? "" : context.partials.signatureTitle(model, {}),
        said === undefined ? "" : context.partials.comment(said, { showTags: false }),
        (model.parameters ?? []).flatMap(parameter).join("\n"),
        said === undefined ? "" : context.partials.comment(said, { showSummary: false, showReturns: true }),
      ]
      return parts.filter((part) => part !== "").join("\n\n")
    },
    declaration: (model, options) => {
      const { type } = model
      if (model.kind !== ReflectionKind.TypeAlias || type?.type !== "union")
        return declaration(model, options)
      const parts = [
        context.partials.declarationTitle(model),
        model.comment === undefined ? "" : context.partials.comment(model.comment, {}),
        type.elementSummaries === undefined && literalsOf(type).length === 0 ? "" : alternatives(type),
      ]
      return parts.filter((part) => part !== "").join("\n\n")
    },
  }
}

/** `{ kind: "soft", percent }`: members whose value is fixed with it. */
function shapeOf({ children = [] }: DeclarationReflection): string {
  const shown = children.map(({ name, type, flags }) =>
    type?.type === "literal" ? `${name}: ${type}` : `${name}${flags.isOptional ? "?" : ""}`,
  )
  return `\`{ ${shown.join(", ")} }\``
}
