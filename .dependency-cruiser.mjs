import { readdirSync, readFileSync } from "node:fs"

// The allowed imports between files, including type imports. ARCHITECTURE.md draws the same arrows.

const CORE = "^packages/core/src/"
const DOORS = `${CORE}(index|stores|adapters|kit|rules|replay|testing)(\\.test)?\\.ts$`
const DYNAMODB = "^packages/dynamodb/src/"
const OTEL = "^packages/otel/src/"
const REDIS = "^packages/redis/src/"
/** Tests and the files that they share. */
const TEST_FILES = "(\\.(test|test-d)\\.ts|/testing/[^/]+\\.ts)$"

/** The rooms of the core, each with the rooms or files below that it may import. */
const BELOW = {
  ground: [],
  algorithms: ["ground"],
  request: ["ground"],
  rules: ["decision/decision.ts", "algorithms/kinds.ts", "ground"],
  stores: ["algorithms", "ground"],
  decision: ["stores", "algorithms", "ground"],
  limiter: ["decision", "rules", "request", "stores", "algorithms", "ground"],
  http: ["limiter", "decision", "request", "ground"],
  replay: ["limiter", "decision", "rules", "request", "stores", "ground"],
}

/** Rooms that the tests of a room may also import. For example, a limiter is tested with rules and a store. */
const FOR_TESTS = { http: ["rules", "stores", "algorithms"] }

const places = (names) =>
  `${CORE}(${names.map((name) => (name.endsWith(".ts") ? name.replace(".", "\\.") : `${name}/`)).join("|")})`

const roomRules = Object.entries(BELOW).flatMap(([room, below]) => {
  const rule = (name, from, rooms) => ({
    name,
    comment: `Inside the core, ${room} may import ${below.join(", ") || "nothing"} and itself.`,
    severity: "error",
    from,
    to: { path: CORE, pathNot: places([room, ...rooms]) },
  })
  const path = `${CORE}${room}/`
  return [
    rule(`core-${room}-imports-down`, { path, pathNot: TEST_FILES }, below),
    rule(`core-${room}-tests-import-down`, { path: `${path}.*${TEST_FILES}` }, [
      ...below,
      ...(FOR_TESTS[room] ?? []),
    ]),
  ]
})

/**
 * The parts of large rooms, each with the parts that it may import. A part is a folder and the file next to it of the same name.
 * Every part may import the files in `shared`, which import no part. All other files of the room may import every part.
 */
const PARTS = {
  http: { shared: [], below: { headers: [], rejection: ["headers"] } },
  limiter: {
    shared: [],
    below: {
      interface: [],
      options: [],
      callbacks: [],
      "spare-capacity": [],
      waiting: [],
      events: ["interface", "options"],
      "rule-set": ["interface", "options", "callbacks", "spare-capacity"],
      checking: ["interface", "options", "callbacks", "waiting", "events", "rule-set"],
      control: ["interface", "options", "callbacks", "rule-set", "checking"],
    },
  },
  rules: {
    shared: ["rule", "throttle", "rejection", "service-metadata"],
    below: {
      matching: [],
      parsing: ["matching"],
      documents: ["parsing", "matching"],
    },
  },
}

/** Packages that consist of parts, like the large rooms of the core. */
const PARTS_OF_PACKAGES = {
  redis: {
    shared: ["commands", "failure"],
    below: { clients: [], scripts: [], node: ["scripts"], batching: ["node", "scripts"] },
  },
  rules: {
    shared: ["source", "registry"],
    below: { text: [], book: ["rule-book"], sources: ["text", "book/live-source"] },
  },
  scale: {
    shared: [],
    below: { "in-front": [], leased: ["in-front"], mirrored: ["in-front"], "write-back": ["in-front"] },
  },
  // program, index.ts, main.ts and decision-service.ts are on top.
  service: {
    shared: ["status-error"],
    below: {
      gen: [],
      wire: ["gen"],
      bounds: [],
      sockets: ["bounds"],
      calls: ["bounds", "wire", "gen"],
      registering: [],
      deciding: ["calls", "bounds", "wire"],
      contract: ["deciding", "registering", "calls", "bounds", "wire", "gen"],
      envoy: ["contract/service-name", "deciding", "registering", "calls", "gen"],
      grpc: ["calls", "sockets", "bounds", "wire"],
      http: ["contract", "deciding", "calls", "sockets", "bounds", "wire", "gen"],
    },
  },
}

const partRules = [
  ...Object.entries(PARTS).flatMap(([room, parts]) => partRulesOf(room, `${CORE}${room}/`, parts)),
  ...Object.entries(PARTS_OF_PACKAGES).flatMap(([name, parts]) =>
    partRulesOf(name, `^packages/${name}/src/`, parts),
  ),
]

function partRulesOf(room, path, { shared, below }) {
  const rule = (from, name, others) => ({
    name: `${room}-${name}-imports-down`,
    comment: `Inside ${room}, ${name} may import ${[...shared, ...others].join(", ")}, and nothing else.`,
    severity: "error",
    from: { path: `${path}${from}`, pathNot: TEST_FILES },
    to: {
      path,
      pathNot: [
        `${path}(${[...others].join("|")})(/|\\.ts$)`,
        ...(shared.length > 0 ? [`${path}(${shared.join("|")})\\.ts$`] : []),
      ],
    },
  })
  return [
    ...Object.entries(below).map(([part, others]) => rule(`${part}(/|\\.ts$)`, part, [part, ...others])),
    ...(shared.length > 0 ? [rule(`(${shared.join("|")})\\.ts$`, "shared", shared)] : []),
  ]
}

const guardRule = {
  name: "http-guard-on-top",
  comment:
    "The code for headers and rejections must not import the guard. Only respond.ts does, to carry out its decisions.",
  severity: "error",
  from: { path: CORE, pathNot: [`${CORE}http/(guard/|respond\\.ts$)`, DOORS, TEST_FILES] },
  to: { path: `${CORE}http/guard/` },
}

/** Ports, each with the files that it may import in addition to ground. */
const PORTS = {
  "algorithms/algorithm": [],
  "stores/store": ["algorithms/algorithm", "stores/store-status"],
  "stores/store-status": [],
  "stores/transactional/counter-backend": ["algorithms/algorithm", "stores/store"],
  "rules/live-rules": ["rules/rule", "rules/service-metadata"],
  "request/request": [],
}

const portRules = Object.entries(PORTS).map(([port, others]) => ({
  name: `port-${port.replace("/", "-")}`,
  comment: "A port must not import its implementations.",
  severity: "error",
  from: { path: `${CORE}${port}\\.ts$` },
  to: { pathNot: [`${CORE}ground/`, ...others.map((other) => `${CORE}${other}\\.ts$`)] },
}))

/** Libraries on top of the core, each with the packages that it may import in addition to the core and Node's modules. */
const LIBRARIES = readdirSync("packages")
  .filter((name) => !["cli", "client", "contracts", "core", "service"].includes(name))
  .map((name) => {
    const { dependencies, peerDependencies } = JSON.parse(
      readFileSync(`packages/${name}/package.json`, "utf8"),
    )
    return [
      name,
      Object.keys({ ...dependencies, ...peerDependencies }).filter((other) => other !== "@sluice/core"),
    ]
  })

/** The entry points of the core that a package may import in addition to the main one and the kit, which are for all. */
const DOORS_FOR = {
  redis: ["stores"],
  scale: ["stores"],
  contracts: ["rules", "stores", "testing"],
  dashboard: ["rules"],
  rules: ["rules"],
  dynamodb: ["rules"],
  express: ["adapters"],
  fastify: ["adapters"],
  koa: ["adapters"],
  nestjs: ["adapters"],
  fetch: ["adapters"],
  otel: ["adapters"],
  recording: ["adapters"],
  cli: ["adapters", "rules", "stores"],
  "express-rate-limit-store": ["adapters", "stores"],
  service: ["adapters", "rules", "stores"],
  logs: ["adapters", "replay", "rules", "stores"],
}
const doorsFor = (name) => `${CORE}(${["index", "kit", ...(DOORS_FOR[name] ?? [])].join("|")})\\.ts$`

const libraryRules = LIBRARIES.map(([name, packages]) => ({
  name: `${name}-imports-core-and-its-own-packages`,
  comment: `@sluice/${name} may only import ${["@sluice/core", ...packages].join(", ")}.`,
  severity: "error",
  from: { path: `^packages/${name}/src/`, pathNot: TEST_FILES },
  to: {
    pathNot: [
      `^packages/${name}/(src/|package\\.json$)`,
      doorsFor(name),
      `(^|node_modules/)(${packages.join("|")})(/|$)`,
      ...packages
        .filter((other) => other.startsWith("@sluice/"))
        .map((other) => `^packages/${other.slice("@sluice/".length)}/src/index\\.ts$`),
      // Other rules allow these in HTML pages only.
      "/node_modules/uplot/",
      "^pages/",
    ],
    dependencyTypesNot: ["core"],
  },
}))

/** Packages that the contract suites may import in addition to the core's entry points and Node's modules. */
const CONTRACTS_PACKAGES = ["expect", "fast-check"]

/** Packages that the command line may import in addition to the core's entry points and Node's modules. */
const CLI_PACKAGES = ["@aws-sdk/client-dynamodb", "commander", "ioredis", "yaml"]

/** The files of HTML pages, which the build bundles into packages. */
const PAGES = [
  "^packages/logs/src/report/(report-html\\.ts|page/)",
  "^packages/dashboard/src/(mount/page-files\\.ts|page/)",
]

const SERVICE = "^packages/service/src/"
/** Packages that the decision service may import in addition to the core's entry points and Node's modules. */
const SERVICE_PACKAGES = [
  ...["@aws-sdk/client-dynamodb", "@bufbuild/protobuf", "@grpc/grpc-js", "commander", "grpc-health-check"],
  ...["@opentelemetry", "fastify", "ioredis", "pino"],
]

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: [
    {
      name: "no-circular",
      comment: "Files must not import each other in a circle, not even for types.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      comment: "A file without any imports in either direction is unused. Delete it.",
      severity: "error",
      from: {
        orphan: true,
        pathNot: [TEST_FILES, "\\.d\\.c?ts$", "(^|/)[^/]+\\.config\\.ts$", "^packages/[^/]+/bin/"],
      },
      to: {},
    },
    {
      name: "named-for-its-purpose",
      comment: "Name a file after its contents, not common, helpers, misc, shared, types or utils.",
      severity: "error",
      from: {},
      to: { path: "/(common|helpers|misc|shared|types|utils)[.]ts$", pathNot: "node_modules" },
    },
    {
      name: "no-unresolvable",
      comment: "The import cannot be resolved.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-undeclared-dependency",
      comment: "A package must declare what it imports in its own package.json.",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: TEST_FILES },
      // An optional peer is reported both as declared and as undeclared.
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["npm-peer"] },
    },
    {
      name: "no-dev-dependency-in-source",
      comment: "The sources of a package must not import devDependencies, because users do not get them.",
      severity: "error",
      from: { path: "^packages/(?!core/)[^/]+/src/", pathNot: TEST_FILES },
      to: {
        dependencyTypes: ["npm-dev"],
        dependencyTypesNot: ["npm", "npm-peer", "npm-optional"],
        // Bundled into HTML pages: pages/page-build.ts.
        pathNot: "/node_modules/uplot/",
      },
    },
    {
      name: "plots-only-in-pages",
      comment: "Only HTML pages contain uPlot. No other code may load it.",
      severity: "error",
      from: { path: "^packages/", pathNot: PAGES },
      to: { path: "/node_modules/uplot/" },
    },
    {
      name: "pages-share-with-pages",
      comment: "Only HTML pages may import what pages share.",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: PAGES },
      to: { path: "^pages/" },
    },
    {
      name: "pages-import-no-package",
      comment: "What pages share must not depend on one of them.",
      severity: "error",
      from: { path: "^pages/" },
      to: { path: "^(packages|test|bench|examples)/" },
    },
    {
      name: "no-dev-dependency-in-core",
      comment:
        "The core may only import the devDependencies that are bundled into it: packages/core/tsdown.config.ts.",
      severity: "error",
      from: { path: "^packages/core/src/", pathNot: TEST_FILES },
      to: {
        dependencyTypes: ["npm-dev"],
        dependencyTypesNot: ["npm", "npm-peer", "npm-optional"],
        pathNot: "/node_modules/(negotiator|structured-headers|valibot)/",
      },
    },
    {
      name: "core-errors-import-nothing",
      comment:
        "Every file may import errors.ts, so errors.ts only imports copies.ts and credentials.ts, which only imports node:util.",
      severity: "error",
      from: { path: `${CORE}ground/(errors|credentials|copies)\\.ts$` },
      to: {
        pathNot: [`${CORE}ground/(credentials|copies)\\.ts$`, "^packages/core/package\\.json$", "^util$"],
      },
    },
    {
      name: "core-shape-for-rules-and-options",
      comment:
        "shape.ts loads the schema library. Only rules and the options of limiters and replays may import it.",
      severity: "error",
      from: {
        path: CORE,
        pathNot: [
          `${CORE}rules/`,
          `${CORE}(limiter/options/|replay/options\\.ts$)`,
          `${CORE}ground/shape\\.(test\\.)?ts$`,
        ],
      },
      to: { path: `${CORE}ground/shape\\.ts$` },
    },
    ...roomRules,
    ...partRules,
    guardRule,
    ...portRules,
    {
      name: "core-known-rooms",
      comment: "Every file of the core must be an entry point, or in a room that is listed in BELOW.",
      severity: "error",
      from: { path: CORE, pathNot: [DOORS, `${CORE}(${Object.keys(BELOW).join("|")})/`] },
      to: {},
    },
    {
      name: "core-loads-no-client",
      comment:
        "The app creates the clients. Only @sluice/dynamodb imports one, because its commands are classes. @sluice/redis gets the app's client.",
      severity: "error",
      from: { path: [CORE, REDIS], pathNot: TEST_FILES },
      to: { path: "(^|node_modules/)(ioredis|redis|@redis|@aws-sdk|@smithy)(/|$)" },
    },
    {
      name: "otel-loads-its-api-alone",
      comment:
        "@sluice/otel may only import OpenTelemetry's API, which finds the SDK that the app has set up.",
      severity: "error",
      from: { path: OTEL },
      to: { path: "(^|node_modules/)@opentelemetry/(?!api(/|$))" },
    },
    {
      name: "core-loads-no-opentelemetry",
      comment: "Only @sluice/otel may load OpenTelemetry.",
      severity: "error",
      from: { path: CORE },
      to: { path: [OTEL, "(^|node_modules/)@opentelemetry/api(/|$)"] },
    },
    {
      name: "dynamodb-loads-its-client-alone",
      comment:
        "The code for DynamoDB may only import the package @aws-sdk/client-dynamodb, and no other client.",
      severity: "error",
      from: { path: DYNAMODB, pathNot: TEST_FILES },
      to: {
        path: "(^|node_modules/)(ioredis|redis|@redis|@aws-sdk|@smithy)(/|$)",
        pathNot: "(^|node_modules/)@aws-sdk/client-dynamodb(/|$)",
      },
    },
    {
      name: "core-imports-no-package",
      comment:
        "The core must not import a framework or another package. Tests of limiters whose rules change need a rule book.",
      severity: "error",
      from: { path: "^packages/core/" },
      to: {
        path: [
          "^packages/(?!(core|rules)/)",
          `(^|node_modules/)(${LIBRARIES.flatMap(([, packages]) => packages)
            .filter((name) => name !== "@sluice/rules")
            .join("|")})(/|$)`,
        ],
      },
    },
    {
      name: "core-does-not-import-rules",
      comment: "The core only knows the port of rules that change.",
      severity: "error",
      from: { path: "^packages/core/", pathNot: TEST_FILES },
      to: { path: "^packages/rules/" },
    },
    ...libraryRules,
    {
      name: "client-imports-nothing",
      comment: "@sluice/client imports nothing: it runs in browsers, without the core.",
      severity: "error",
      from: { path: "^packages/client/src/", pathNot: TEST_FILES },
      to: { pathNot: "^packages/client/src/" },
    },
    {
      name: "contracts-import-core-and-their-own-packages",
      comment: "@sluice/contracts may only import @sluice/core, expect and fast-check, and no test runner.",
      severity: "error",
      from: { path: "^packages/contracts/src/", pathNot: TEST_FILES },
      to: {
        pathNot: [
          "^packages/contracts/src/",
          doorsFor("contracts"),
          "^packages/rules/src/index\\.ts$",
          `(^|node_modules/)(${CONTRACTS_PACKAGES.join("|")})(/|$)`,
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "cli-imports-core-and-its-own-packages",
      comment: "@sluice/cli may only import packages of Sluice and the packages in CLI_PACKAGES.",
      severity: "error",
      from: { path: "^packages/cli/src/", pathNot: TEST_FILES },
      to: {
        pathNot: [
          "^packages/cli/(src/|package\\.json$)",
          doorsFor("cli"),
          "^packages/(dashboard|dynamodb|logs|redis|rules)/src/index\\.ts$",
          `(^|node_modules/)(${CLI_PACKAGES.join("|")})(/|$)`,
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "service-imports-core-and-its-own-packages",
      comment: "@sluice/service may only import @sluice/core and the packages in SERVICE_PACKAGES.",
      severity: "error",
      from: { path: SERVICE, pathNot: TEST_FILES },
      to: {
        pathNot: [
          SERVICE,
          "^packages/service/package\\.json$",
          doorsFor("service"),
          "^packages/(dashboard|dynamodb|otel|redis|rules|scale)/src/index\\.ts$",
          `(^|node_modules/)(${SERVICE_PACKAGES.join("|")})(/|$)`,
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "packages-by-their-names",
      comment: "A package must import another by its public name, not by a path into it.",
      severity: "error",
      from: { path: "^packages/([^/]+)/" },
      to: {
        path: "^packages/",
        // Tests of stores use what the tests of the core share.
        pathNot: ["^packages/$1/", "^packages/core/src/(ground|stores)/testing/"],
        dependencyTypesNot: ["aliased"],
      },
    },
    {
      name: "packages-stand-alone",
      comment:
        "Published packages must not import test, bench or examples. Their tests may ask how widely to search.",
      severity: "error",
      from: { path: "^packages/" },
      to: { path: "^(test|bench|examples)/", pathNot: "^test/test-length\\.ts$" },
    },
    {
      name: "examples-use-public-names",
      comment: "Examples must import packages by their public names, as users do.",
      severity: "error",
      from: { path: "^examples/" },
      to: { path: "^packages/", dependencyTypesNot: ["aliased"] },
    },
    {
      name: "examples-stand-alone",
      comment: "Examples must not import test or bench, because users do not have them.",
      severity: "error",
      from: { path: "^examples/" },
      to: { path: "^(test|bench)/" },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: "(^|/)(dist|coverage|\\.turbo)/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node", "default"],
    },
  },
}
