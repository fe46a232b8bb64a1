import { join } from "node:path"
import { Application, Logger, LogLevel, type ProjectReflection, type TypeDocOptions } from "typedoc"
import type { MarkdownApplication, PluginOptions } from "typedoc-plugin-markdown"
import typescript from "typescript"
import { DoorRouter, pageName } from "./router.ts"
import { ReferenceTheme } from "./theme.ts"

/** The input of {@link readModel}. */
export interface ModelOptions {
  /** Paths of the entry points' sources. */
  readonly sources: readonly string[]
  /** Path of a tsconfig.json. Only its compiler options are used. */
  readonly tsconfig: string
}

/** The public surface as TypeDoc sees it. */
export interface Model {
  readonly app: Application
  readonly project: ProjectReflection
  /** TypeDoc's warnings, such as broken links in docstrings or unknown tags. */
  readonly warnings: readonly string[]
}

const OPTIONS: Partial<TypeDocOptions & PluginOptions> = {
  plugin: ["typedoc-plugin-markdown"],
  logLevel: "Warn",
  name: "Sluice",
  // Another command already type-checks the sources.
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
  // TypeDoc's own checks look at one package only. gaps.ts checks all packages together.
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

/** Reads the sources. Rejects if TypeDoc returns no project, for example because the source of an entry point is missing. */
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
  // Resolves links to exports of another entry point, and to exports that the docstring's own file does not import.
  app.converter.addUnknownSymbolResolver(({ symbolReference }, { project }, part) => {
    const names = part === undefined ? [] : (symbolReference?.path ?? []).map(({ path }) => path)
    const door = project.children?.find(({ children }) => children?.some(({ name }) => name === names[0]))
    // links.ts checks later that the member exists.
    return door && { target: `${pageName(door.name)}.md#${names.join(".")}`, caption: names.join(".") }
  })
  const project = await app.convert()
  if (project === undefined)
    throw new Error(["TypeDoc could not read the entry points", ...warnings].join("\n"))
  app.validate(project)
  return { app, project, warnings }
}

/** Collects warnings and errors, and drops less severe messages. */
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
