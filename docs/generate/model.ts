import { join } from "node:path"
import { Application, Logger, LogLevel, type ProjectReflection, type TypeDocOptions } from "typedoc"
import type { MarkdownApplication, PluginOptions } from "typedoc-plugin-markdown"
import typescript from "typescript"
import { DoorRouter, pageName } from "./router.ts"
import { ReferenceTheme } from "./theme.ts"

/** What is read. */
export interface ModelOptions {
  /** Paths of the doors' sources. */
  readonly sources: readonly string[]
  /** A tsconfig.json: only its compiler options count. */
  readonly tsconfig: string
}

/** The public surface as TypeDoc sees it. */
export interface Model {
  readonly app: Application
  readonly project: ProjectReflection
  /** What TypeDoc says is wrong: links in docstrings that lead nowhere, tags that it does not know. */
  readonly warnings: readonly string[]
}

const OPTIONS: Partial<TypeDocOptions & PluginOptions> = {
  plugin: ["typedoc-plugin-markdown"],
  logLevel: "Warn",
  name: "Sluice",
  // The compiler is asked elsewhere.
  skipErrorChecking: true,
  excludeExternals: true,
  excludePrivate: true,
  // Line numbers would change with every edit.
  disableSources: true,
  readme: "none",
  hideGenerator: true,
  sort: ["kind", "source-order"],
  kindSortOrder: [
    "Function",
    "Variable",
    "Interface",
    "TypeAlias",
    "Class",
    "Constructor",
    "Property",
    "Method",
  ],
  groupOrder: [
    ...["Functions", "Variables", "Interfaces", "Type Aliases", "Classes"],
    ...["Constructors", "Properties", "Methods", "*"],
  ],
  categorizeByGroup: false,
  // TypeDoc's own looks into one package only; gaps.ts looks into all of them.
  validation: { invalidLink: true, notExported: false, notDocumented: false },
  router: "door",
  theme: "reference",
  fileExtension: ".md",
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useHTMLAnchors: true,
  expandObjects: true,
  expandParameters: true,
  parametersFormat: "none",
  interfacePropertiesFormat: "table",
  classPropertiesFormat: "table",
  typeAliasPropertiesFormat: "table",
  typeDeclarationFormat: "table",
  tableColumnSettings: {
    hideDefaults: true,
    hideInherited: true,
    hideModifiers: true,
    hideOverrides: true,
    hideSources: true,
    hideValues: false,
    leftAlignHeaders: false,
  },
}

/** Reads the sources. Rejects where TypeDoc yields nothing, which it does for a door that is not there. */
export async function readModel({ sources, tsconfig }: ModelOptions): Promise<Model> {
  const app = (await Application.bootstrapWithPlugins({
    ...OPTIONS,
    entryPoints: [...sources],
  })) as MarkdownApplication
  const warnings: string[] = []
  app.logger = new Collector(warnings)
  app.renderer.defineRouter("door", DoorRouter)
  app.renderer.defineTheme("reference", ReferenceTheme)
  app.options.setCompilerOptions([...sources], compilerOptions(tsconfig), undefined)
  // A link to what another door exports, or the docstring's own file does not import.
  app.converter.addUnknownSymbolResolver(({ symbolReference }, { project }, part) => {
    const names = part === undefined ? [] : (symbolReference?.path ?? []).map(({ path }) => path)
    const door = project.children?.find(({ children }) => children?.some(({ name }) => name === names[0]))
    // Whether there is such a member, links.ts sees.
    return door && { target: `${pageName(door.name)}.md#${names.join(".")}`, caption: names.join(".") }
  })
  const project = await app.convert()
  if (project === undefined) throw new Error(["TypeDoc made nothing of the doors", ...warnings].join("\n"))
  app.validate(project)
  return { app, project, warnings }
}

/** Keeps what is wrong, for who asked; everything else is not worth a line. */
class Collector extends Logger {
  readonly #warnings: string[]

  constructor(warnings: string[]) {
    super()
    this.#warnings = warnings
  }

  override log(message: string, level: LogLevel): void {
    super.log(message, level)
    if (level >= LogLevel.Warn) this.#warnings.push(message)
  }
}

function compilerOptions(tsconfig: string): typescript.CompilerOptions {
  const { config } = typescript.readConfigFile(tsconfig, typescript.sys.readFile)
  return typescript.parseJsonConfigFileContent(config, typescript.sys, join(tsconfig, "..")).options
}
