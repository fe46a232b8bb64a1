// Which file may import which, type imports included. ARCHITECTURE.md draws the same arrows.

const CORE = "^packages/core/src/"
const DOORS = `${CORE}(index|redis|dynamodb|otel)(\\.test)?\\.ts$`
const DYNAMODB = `${CORE}rules/dynamodb/`
const OTEL = `${CORE}otel/`
/** Tests, and what they share. */
const TEST_FILES = "(\\.(test|test-d)\\.ts|/testing/[^/]+\\.ts)$"

/** The rooms of the core, each with the rooms or files below that it may import. */
const BELOW = {
  ground: [],
  algorithms: ["ground"],
  request: ["ground"],
  rules: ["algorithms/kinds.ts", "ground"],
  stores: ["algorithms", "ground"],
  decision: ["stores", "algorithms", "ground"],
  limiter: ["decision", "rules", "request", "stores", "algorithms", "ground"],
  http: ["limiter", "decision", "request", "ground"],
  otel: ["limiter", "decision", "ground"],
}

/** What tests of a room import besides: a limiter is tested with its rules and on a store. */
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
 * Large rooms have parts, each with the parts below that it may import; a part is a folder and the file of its name beside it.
 * `shared` are files beside them that every part may import, and that import no part. The others are above all parts.
 */
const PARTS = {
  http: { shared: [], below: { headers: [], rejection: ["headers"] } },
  limiter: {
    shared: ["callbacks"],
    below: {
      "spare-capacity": [],
      waiting: [],
      options: ["rule-set/limit"],
    },
  },
  rules: {
    shared: ["rule", "source", "registry"],
    below: {
      matching: [],
      parsing: ["matching"],
      documents: ["parsing", "matching"],
      sources: ["documents", "parsing", "matching"],
      book: ["rule-book", "parsing", "matching"],
      dynamodb: ["documents", "parsing", "matching", "book/call-start"],
    },
  },
  "stores/redis": {
    shared: ["commands", "failure"],
    below: { clients: [], scripts: [], node: ["scripts"], batching: ["node", "scripts"] },
  },
}

const partRules = Object.entries(PARTS).flatMap(([room, { shared, below }]) => {
  const rule = (from, name, others) => ({
    name: `${room.replace("/", "-")}-${name}-imports-down`,
    comment: `Inside ${room}, ${name} may import ${[...shared, ...others].join(", ")}, and nothing else.`,
    severity: "error",
    from: { path: `${CORE}${room}/${from}`, pathNot: TEST_FILES },
    to: {
      path: `${CORE}${room}/`,
      pathNot: [
        `${CORE}${room}/(${[...others].join("|")})(/|\\.ts$)`,
        ...(shared.length > 0 ? [`${CORE}${room}/(${shared.join("|")})\\.ts$`] : []),
      ],
    },
  })
  return [
    ...Object.entries(below).map(([part, others]) => rule(`${part}(/|\\.ts$)`, part, [part, ...others])),
    ...(shared.length > 0 ? [rule(`(${shared.join("|")})\\.ts$`, "shared", shared)] : []),
  ]
})

const guardRule = {
  name: "http-guard-on-top",
  comment:
    "What writes headers and rejections does not know the guard. What the guard decides, respond carries out.",
  severity: "error",
  from: { path: CORE, pathNot: [`${CORE}http/(guard/|respond\\.ts$)`, DOORS, TEST_FILES] },
  to: { path: `${CORE}http/guard/` },
}

const leasedRule = {
  name: "stores-leased-knows-no-store",
  comment: "Leases are in front of any shared store: they know the port, and no implementation.",
  severity: "error",
  from: { path: `${CORE}stores/leased/`, pathNot: TEST_FILES },
  to: {
    path: `${CORE}stores/`,
    pathNot: `${CORE}stores/(leased/|(store|store-listeners|take-together)\\.ts$)`,
  },
}

/** Ports, each with the files that it may import beside the ground. */
const PORTS = {
  "algorithms/algorithm": [],
  "stores/store": ["algorithms/algorithm"],
  "stores/transactional/counter-backend": ["algorithms/algorithm", "stores/store"],
  "rules/source": ["rules/rule"],
  "rules/registry": ["rules/rule"],
  "request/request": [],
}

const portRules = Object.entries(PORTS).map(([port, others]) => ({
  name: `port-${port.replace("/", "-")}`,
  comment: "A port is what its implementers agree on: it imports none of them.",
  severity: "error",
  from: { path: `${CORE}${port}\\.ts$` },
  to: { pathNot: [`${CORE}ground/`, ...others.map((other) => `${CORE}${other}\\.ts$`)] },
}))

/** Adapters, each with the packages that it may import beside the core and Node itself. */
const ADAPTERS = {
  express: ["express", "@types/express"],
  fastify: ["fastify", "fastify-plugin"],
  koa: ["koa", "@types/koa"],
}

const adapterRules = Object.entries(ADAPTERS).map(([adapter, packages]) => ({
  name: `${adapter}-imports-core-and-its-framework`,
  comment: `@sluice/${adapter} imports @sluice/core and ${packages[0]}.`,
  severity: "error",
  from: { path: `^packages/${adapter}/src/`, pathNot: TEST_FILES },
  to: {
    pathNot: [
      `^packages/${adapter}/src/`,
      `${CORE}index\\.ts$`,
      `(^|node_modules/)(${packages.join("|")})(/|$)`,
    ],
    dependencyTypesNot: ["core"],
  },
}))

/** What the contract suites may import beside the core's door and Node itself. */
const CONTRACTS_PACKAGES = ["expect", "fast-check"]

/** What the program may import beside the core's doors and Node itself. */
const CLI_PACKAGES = ["@aws-sdk/client-dynamodb", "commander", "yaml"]

const SERVICE = "^packages/service/src/"
/** What the decision service may import beside the core's doors and Node itself. */
const SERVICE_PACKAGES = [
  ...["@aws-sdk/client-dynamodb", "@bufbuild/protobuf", "@grpc/grpc-js", "commander", "grpc-health-check"],
  ...["@opentelemetry", "fastify", "ioredis", "pino"],
]

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: [
    {
      name: "no-circular",
      comment: "A circle of imports, type imports included, is one file in disguise.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      comment: "A file that nothing imports and that imports nothing is left over.",
      severity: "error",
      from: {
        orphan: true,
        pathNot: [TEST_FILES, "\\.d\\.ts$", "(^|/)[^/]+\\.config\\.ts$", "^packages/[^/]+/bin/"],
      },
      to: {},
    },
    {
      name: "named-for-its-purpose",
      comment: "A file of that name is for whatever is put there next: what is in it has a name of its own.",
      severity: "error",
      from: {},
      to: { path: "/(common|helpers|misc|shared|types|utils)[.]ts$", pathNot: "node_modules" },
    },
    {
      name: "no-unresolvable",
      comment: "An import that leads nowhere.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-undeclared-dependency",
      comment: "What a package imports is in its own package.json.",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: TEST_FILES },
      // Of an optional peer it says both that it is declared and that it is not.
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["npm-peer"] },
    },
    {
      name: "no-dev-dependency-in-source",
      comment: "Who installs a package does not get its devDependencies.",
      severity: "error",
      from: { path: "^packages/(?!core/)[^/]+/src/", pathNot: TEST_FILES },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm", "npm-peer", "npm-optional"] },
    },
    {
      name: "no-dev-dependency-in-core",
      comment: "The same, but for what is built into the core: packages/core/tsdown.config.ts.",
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
        "Anybody may import errors.ts, so it imports only what removes passwords from messages, which imports only node:util.",
      severity: "error",
      from: { path: `${CORE}ground/(errors|credentials)\\.ts$` },
      to: { pathNot: [`${CORE}ground/credentials\\.ts$`, "^util$"] },
    },
    {
      name: "core-shape-for-rules-and-options",
      comment:
        "shape.ts loads the schema library: only rules and the limiter's options import it, so that Redis and OpenTelemetry do without.",
      severity: "error",
      from: {
        path: CORE,
        pathNot: [`${CORE}rules/`, `${CORE}limiter/options/`, `${CORE}ground/shape\\.(test\\.)?ts$`],
      },
      to: { path: `${CORE}ground/shape\\.ts$` },
    },
    ...roomRules,
    ...partRules,
    guardRule,
    leasedRule,
    ...portRules,
    {
      name: "core-known-rooms",
      comment: "Every file of the core is a door, or in a room whose arrows are known.",
      severity: "error",
      from: { path: CORE, pathNot: [DOORS, `${CORE}(${Object.keys(BELOW).join("|")})/`] },
      to: {},
    },
    {
      name: "core-loads-no-client",
      comment:
        "The core takes a client that the app made; it imports none but DynamoDB's, whose commands are classes.",
      severity: "error",
      from: { path: CORE, pathNot: DYNAMODB },
      to: { path: "(^|node_modules/)(ioredis|redis|@redis|@aws-sdk|@smithy)(/|$)" },
    },
    {
      name: "otel-loads-its-api-alone",
      comment:
        "What measures imports OpenTelemetry's API, which finds the SDK that the app has set up; nothing else does.",
      severity: "error",
      from: { path: CORE },
      to: { path: "(^|node_modules/)@opentelemetry/(?!api(/|$))" },
    },
    {
      name: "otel-by-its-own-door",
      comment: "OpenTelemetry is loaded by who imports @sluice/core/otel, and by nobody else.",
      severity: "error",
      from: { path: CORE, pathNot: [OTEL, `${CORE}otel\\.ts$`] },
      to: { path: [OTEL, "(^|node_modules/)@opentelemetry/api(/|$)"] },
    },
    {
      name: "dynamodb-loads-its-client-alone",
      comment:
        "What knows DynamoDB imports the one package that an app with DynamoDB has, and no other client.",
      severity: "error",
      from: { path: DYNAMODB, pathNot: TEST_FILES },
      to: {
        path: "(^|node_modules/)(ioredis|redis|@redis|@aws-sdk|@smithy)(/|$)",
        pathNot: "(^|node_modules/)@aws-sdk/client-dynamodb(/|$)",
      },
    },
    {
      name: "dynamodb-by-its-own-door",
      comment: "The AWS SDK is loaded by who imports @sluice/core/dynamodb, and by nobody else.",
      severity: "error",
      from: { path: CORE, pathNot: [DYNAMODB, `${CORE}dynamodb\\.ts$`, TEST_FILES] },
      to: { path: DYNAMODB },
    },
    {
      name: "core-imports-no-adapter",
      comment: "The core knows no framework.",
      severity: "error",
      from: { path: "^packages/core/" },
      to: { path: ["^packages/(?!core/)", "(^|node_modules/)(express|fastify|fastify-plugin|koa)(/|$)"] },
    },
    ...adapterRules,
    {
      name: "contracts-import-core-and-their-own-packages",
      comment:
        "@sluice/contracts imports @sluice/core, and what it compares and makes stories with: no test runner.",
      severity: "error",
      from: { path: "^packages/contracts/src/", pathNot: TEST_FILES },
      to: {
        pathNot: [
          "^packages/contracts/src/",
          `${CORE}index\\.ts$`,
          `(^|node_modules/)(${CONTRACTS_PACKAGES.join("|")})(/|$)`,
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "cli-imports-core-and-its-own-packages",
      comment: "@sluice/cli imports @sluice/core, commander, yaml and the AWS client that it makes.",
      severity: "error",
      from: { path: "^packages/cli/src/", pathNot: TEST_FILES },
      to: {
        pathNot: [
          "^packages/cli/src/",
          `${CORE}(index|dynamodb)\\.ts$`,
          `(^|node_modules/)(${CLI_PACKAGES.join("|")})(/|$)`,
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "service-imports-core-and-its-own-packages",
      comment:
        "@sluice/service imports @sluice/core, and what it speaks gRPC, HTTP, Redis and DynamoDB with.",
      severity: "error",
      from: { path: SERVICE, pathNot: TEST_FILES },
      to: {
        pathNot: [
          SERVICE,
          `${CORE}(index|dynamodb|otel|redis)\\.ts$`,
          `(^|node_modules/)(${SERVICE_PACKAGES.join("|")})(/|$)`,
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "packages-by-their-names",
      comment: "A package knows another by its public name, never by a path into it.",
      severity: "error",
      from: { path: "^packages/([^/]+)/" },
      to: { path: "^packages/", pathNot: "^packages/$1/", dependencyTypesNot: ["aliased"] },
    },
    {
      name: "packages-stand-alone",
      comment: "What is published does not lean on what is not.",
      severity: "error",
      from: { path: "^packages/" },
      to: { path: "^(test|bench|examples)/" },
    },
    {
      name: "examples-use-public-names",
      comment: "An example shows what a user can write.",
      severity: "error",
      from: { path: "^examples/" },
      to: { path: "^packages/", dependencyTypesNot: ["aliased"] },
    },
    {
      name: "examples-stand-alone",
      comment: "An example leans on nothing that a user does not have.",
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
