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

/** The plugin's theme without noise, such as tables of undocumented parameters and types that are shown twice. */
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

  /** Returns a list item for each documented member of an options object that is written out in a signature. */
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

  /** Returns a list item for each alternative of a union, with its documented members below. */
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
    // Without a heading level, because a tag's heading would be as large as a member's. `@example` comes last.
    comment: (model: Comment, options = {}) => {
      model.blockTags.sort((one, other) => Number(one.tag === "@example") - Number(other.tag === "@example"))
      return comment(model, { ...options, headingLevel: undefined })
    },
    // Inherited members look like the type's own members: a user need not know the difference.
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

/** Returns the shape of an object type with the values of literal members, such as `{ kind: "soft", percent }`. */
function shapeOf({ children = [] }: DeclarationReflection): string {
  const shown = children.map(({ name, type, flags }) =>
    type?.type === "literal" ? `${name}: ${type}` : `${name}${flags.isOptional ? "?" : ""}`,
  )
  return `\`{ ${shown.join(", ")} }\``
}
