/** A page of the site. */
export interface Page {
  /** The path below docs, without ".md". */
  readonly path: string
  /** The title in the sidebar: at most four words. */
  readonly title: string
  /** What a reader finds there, in at most 120 characters. */
  readonly description: string
  /** Words that people search for and that the page does not contain: at most 20. */
  readonly words?: string
}

export interface Group {
  readonly title: string
  readonly pages: readonly Page[]
}

/** Every page of the site in reading order, except the pages of errors and of the API, which are listed by their files. */
export const GROUPS: readonly Group[] = [
  {
    title: "Start",
    pages: [
      {
        path: "start/quick-start",
        title: "Quick start",
        description:
          "Install Sluice, limit an Express app, see the first 429, and set the options that most apps need.",
        words: "getting started install setup tutorial world begin configure settings",
      },
      {
        path: "start/how-it-works",
        title: "How it works",
        description:
          "What happens to a request in five steps, the words of these pages, and the parts of a system.",
        words:
          "architecture concepts overview diagram introduction internals flow terms glossary definitions vocabulary",
      },
      {
        path: "start/express",
        title: "Express",
        description:
          "The middleware for Express: order, the decision on the request, and refusals as errors.",
        words: "typescript body parser middleware order router 404 not found",
      },
      {
        path: "start/fastify",
        title: "Fastify",
        description: "The plugin for Fastify: hooks, limits of routes, groups, and refusals as errors.",
        words: "register encapsulation decorate",
      },
      {
        path: "start/koa",
        title: "Koa",
        description: "The middleware for Koa: order, the decision in ctx.state, and refusals as errors.",
        words: "koa-router middleware typescript context",
      },
      {
        path: "start/fetch",
        title: "Hono, Next.js, Bun, Deno",
        description:
          "One line for Hono, SvelteKit and Elysia, and one handler for Next.js, h3, Bun and Deno.",
        words: "edge serverless workers cloudflare lambda remix nitro nuxt",
      },
      {
        path: "start/nestjs",
        title: "NestJS",
        description:
          "The module for NestJS on Express and Fastify: decorators, users, exceptions, and the limiter.",
        words: "nest throttler guard decorator @Throttle RateLimitModule",
      },
      {
        path: "start/testing",
        title: "Test your app",
        description:
          "Test an app with limits: a clock that the test moves, expectLimited, resetAll, and fake timers.",
        words: "jest vitest mocha unit test disable turn off fake timers mock",
      },
      {
        path: "start/questions",
        title: "Questions",
        description:
          "Short answers to what people ask about rate limiting, each with the page that says more.",
        words: "faq help ddos flood why how browser retry storm thundering herd",
      },
    ],
  },
  {
    title: "Protect",
    pages: [
      {
        path: "protect/README",
        title: "What to limit",
        description: "A table of tasks: what to protect, what to limit, and the page with the code.",
        words: "recipes cookbook use cases",
      },
      {
        path: "protect/login",
        title: "Login",
        description: "Limit wrong passwords by account and address, and codes of a second factor.",
        words:
          "brute force password attempts credential stuffing auth signin sign-in 2fa otp mfa authentication reset forgot card testing carding",
      },
      {
        path: "protect/sign-up-and-sms",
        title: "Sign-up and SMS",
        description: "Limit new accounts, and messages that cost money.",
        words: "registration register spam bots otp text message phone email verification toll fraud",
      },
      {
        path: "protect/plans",
        title: "Plans and billing",
        description:
          "Limits that depend on a customer's plan, more units for a month, and invoices from what was used.",
        words:
          "tier tiers pricing subscription trial per customer tenant api key quota usage upgrade paid free pro billing invoice metering overage renewal",
      },
      {
        path: "protect/webhooks",
        title: "Webhooks",
        description: "Limit webhooks that arrive from verified senders, and those that you deliver.",
        words: "stripe github callback delivery endpoint",
      },
      {
        path: "protect/llm-tokens",
        title: "LLM tokens, uploads",
        description: "Limit by cost: the tokens that a model really used, and the megabytes of uploads.",
        words: "openai anthropic gpt ai tpm rpm size file bandwidth",
      },
      {
        path: "protect/graphql-and-trpc",
        title: "GraphQL and tRPC",
        description: "Limit the cost of a GraphQL query, and the calls of tRPC procedures.",
        words: "query complexity apollo resolver procedure",
      },
      {
        path: "protect/websockets",
        title: "WebSockets",
        description: "Limit connections and messages of socket.io and ws.",
        words: "realtime chat socket connection events",
      },
      {
        path: "protect/jobs-and-messages",
        title: "Jobs and messages",
        description: "Limit queue workers, messages to users, and calls of a service.",
        words:
          "bullmq background worker cron email notifications marketing campaigns concurrency throttle jobs",
      },
    ],
  },
  {
    title: "Rules",
    pages: [
      {
        path: "rules/algorithms",
        title: "Choose an algorithm",
        description: "Seven algorithms on the same traffic, each with the most that it admits in any minute.",
        words:
          "sliding window vs token bucket gcra leaky bucket fixed window comparison daily quota per day per month burst",
      },
      {
        path: "rules/limits",
        title: "Choose a limit",
        description: "Replay an access log to see which clients a limit would have refused.",
        words:
          "what limit should i set how many requests good value capacity replay log nginx access log simulate",
      },
      {
        path: "rules/rules",
        title: "Write rules",
        description: "All members of a rule, with their defaults.",
        words: "rule schema members several limits multiple windows per second per minute",
      },
      {
        path: "rules/files",
        title: "Rules in a file",
        description: "Keep rules in a file or a DynamoDB table, and change them without a deploy.",
        words:
          "yaml json hot reload change a limit without deploy configuration dynamic update shadow dry run",
      },
      {
        path: "rules/matching",
        title: "Match requests",
        description: "Apply a rule to some paths, methods, fields or clients, and exempt others.",
        words:
          "limit per user per tenant per api key per route skip health check whitelist allowlist blocklist exclude bypass",
      },
      {
        path: "rules/paths",
        title: "Paths and methods",
        description:
          "Which spellings of a path a rule covers, other paths of a page, batches, and method overrides.",
        words: "url route prefix wildcard glob case trailing slash trpc batch graphql bypass evade _method",
      },
      {
        path: "rules/throttling",
        title: "Throttle",
        description: "Hard, soft and elastic throttling: what happens to a request over its limit.",
        words: "slow down delay soft limit hard limit elastic spare capacity queue requests instead of 429",
      },
      {
        path: "rules/penalties",
        title: "Block abusers",
        description: "Block a client that is refused again and again, for longer each time.",
        words: "ban penalty backoff lockout abuse exponential blacklist",
      },
      {
        path: "rules/in-flight",
        title: "Requests in flight",
        description:
          "Limit the requests that run at the same time: who releases a permit, and what is lost when.",
        words:
          "concurrent concurrency maxConcurrent parallel simultaneous semaphore mutex lock connections websocket streams slots permits",
      },
      {
        path: "rules/waiting",
        title: "Wait in line",
        description: "Let requests wait for their turn instead of refusing them.",
        words: "queue requests instead of 429 delay acquire smooth fifo priority",
      },
      {
        path: "rules/responses",
        title: "Headers and responses",
        description: "The headers on every response, the 429, and how to send your own.",
        words:
          "Retry-After X-RateLimit-Remaining custom error message json body status code 429 handler legacy headers",
      },
    ],
  },
  {
    title: "Run in production",
    pages: [
      {
        path: "production/checklist",
        title: "Checklist",
        description: "What to check before an app with limits goes live, each with a command or a request.",
        words: "go live launch production ready best practices mistakes review deploy",
      },
      {
        path: "production/proxies",
        title: "Behind a proxy",
        description:
          "Find the client's address behind nginx, a load balancer or a CDN, so that nobody can forge it.",
        words:
          "nginx cloudflare real ip x-forwarded-for trust proxy aws alb all users share one limit load balancer kubernetes ingress heroku",
      },
      {
        path: "production/redis",
        title: "Redis",
        description:
          "Connect Redis: clients, timeouts, memory, permissions, Cluster, and the cache of refusals.",
        words:
          "redis cluster valkey glide iovalkey ioredis node-redis elasticache upstash sentinel acl memorydb tls",
      },
      {
        path: "production/redis-fails",
        title: "When Redis fails",
        description: "What clients see while Redis is down, what you see, and what it costs.",
        words: "redis down outage unavailable fail open fail closed degraded fallback timeout failover night",
      },
      {
        path: "production/other-failures",
        title: "When something else fails",
        description:
          "What happens if rules cannot be read, a process restarts, memory runs out, or clocks differ.",
        words: "crash restart invalid rules clock skew dynamodb down memory leak eviction",
      },
      {
        path: "production/locked-out",
        title: "Locked out",
        description: "Find out why a client is refused, and let it in again.",
        words: "unblock a user reset counter unlock whitelist support 429 customer complaint clear",
      },
      {
        path: "production/metrics",
        title: "Metrics and alerts",
        description: "OpenTelemetry metrics and events, a dashboard, and alerts with their first steps.",
        words:
          "prometheus grafana dashboard opentelemetry monitoring observability tracing logs alertmanager datadog",
      },
      {
        path: "production/dashboard",
        title: "Who is limited now",
        description:
          "Mount a page that shows which clients are refused now, by which rule, how often and until when.",
        words: "top clients blocked list who is throttled dashboard page refused offenders abuse",
      },
      {
        path: "production/recording",
        title: "Record decisions",
        description: "Write decisions to a file or a database, to find out later who was refused and why.",
        words: "audit log analytics history postgres events export",
      },
      {
        path: "production/privacy",
        title: "Privacy",
        description: "Where addresses and user ids are stored, for how long, and how to hash or delete them.",
        words: "gdpr personal data pii anonymize ip addresses retention compliance dsgvo erase pseudonymize",
      },
      {
        path: "production/sizing",
        title: "Sizing",
        description: "How many Redis servers a number of requests needs, and how long a decision takes.",
        words: "capacity latency overhead memory cost performance how many",
      },
    ],
  },
  {
    title: "Scale",
    pages: [
      {
        path: "scale/stores",
        title: "Choose a store",
        description: "Five ways to keep counters, with the most that each admits and what each waits for.",
        words: "hot key scaling throughput many instances sharding",
      },
      {
        path: "scale/leases",
        title: "Leases",
        description: "Decide large limits without a round trip to Redis, and never exceed them.",
        words: "batch prefetch local quota reduce redis calls latency",
      },
      {
        path: "scale/data-centers",
        title: "Several regions",
        description: "One limit over data centers that each have their own Redis.",
        words: "multi-region multiple regions global replication geo distributed active-active",
      },
      {
        path: "scale/write-back",
        title: "Write-back",
        description:
          "Count in the process and write to Redis later, for limits that may be exceeded a little.",
        words: "asynchronous eventual consistency approximate batch flush",
      },
    ],
  },
  {
    title: "Other servers and clients",
    pages: [
      {
        path: "service/start",
        title: "The decision service",
        description: "Start the service, ask it whether a request may be forwarded, and require tokens.",
        words:
          "microservice server grpc http api sidecar docker standalone other languages createDecisionService embed library",
      },
      {
        path: "service/gateways",
        title: "nginx, HAProxy, Caddy, Traefik",
        description:
          "Configurations with which a gateway asks the decision service, and the HTTP request that it sends.",
        words:
          "auth_request forward_auth forwardauth ext_authz api gateway ingress reverse proxy lua njs kong apisix x-original-uri subrequest external authorization",
      },
      {
        path: "service/envoy",
        title: "Envoy",
        description:
          "Use the service as Envoy's rate limit service, and import the files of Envoy's own one.",
        words:
          "istio envoyproxy ratelimit rls service mesh gateway contour emissary migrate lyft yaml convert import config access log hits_addend dynamic_metadata",
      },
      {
        path: "service/calls",
        title: "Go, Python, other languages",
        description: "Call the service over gRPC or HTTP: all fields, batches, errors, and programs to copy.",
        words:
          "ShouldForwardRequests ShouldForwardRequest api reference grpcurl connect protobuf schema bulk status codes golang java rust php sdk stub round robin client",
      },
      {
        path: "service/deploy",
        title: "Deploy and operate",
        description: "Kubernetes manifests, compose, health checks, shutdown, metrics, logs and overload.",
        words:
          "deploy on k8s helm kustomize readiness liveness probe graceful hpa pod container prometheus monitoring observability opentelemetry 503 unavailable backpressure attack failed TLS handshakes",
      },
      {
        path: "service/registering",
        title: "Register rules",
        description:
          "Let owners of services register their own rules through the service, and with which tokens.",
        words: "registry owner self-service register service api tokens",
      },
      {
        path: "service/dynamodb",
        title: "Rules in DynamoDB",
        description:
          "The table of rules: load them, register them in code, who may write, and what it costs.",
        words:
          "aws table iam permissions dynamodbregistry createtable optimistic locking conflict RuleConflictError programmatic",
      },
      {
        path: "client/calling",
        title: "Call a limited API",
        description:
          "A fetch that reads the headers of any server, and waits before the server has to refuse.",
        words:
          "429 from another api retry backoff too many requests client throttle outgoing quota github sdk got anthropic exception paceerror listener parse epoch x-ratelimit-reset",
      },
    ],
  },
  {
    title: "Migrate",
    pages: [
      {
        path: "migrate/README",
        title: "From another limiter",
        description: "What changes when you leave another limiter, and how to do it without losing counts.",
        words: "migration switch replace compare alternative",
      },
      {
        path: "migrate/express-rate-limit",
        title: "express-rate-limit",
        description:
          "Each option of express-rate-limit with its counterpart, and a store for those who stay.",
        words: "windowMs max standardHeaders legacyHeaders keyGenerator",
      },
      {
        path: "migrate/express-rate-limit-store",
        title: "Only the store",
        description: "Keep express-rate-limit, and let Sluice count: one line instead of rate-limit-redis.",
        words: "rate-limit-redis RedisStore sendCommand passOnStoreError keep replace SluiceStore",
      },
      {
        path: "migrate/fastify-rate-limit",
        title: "@fastify/rate-limit",
        description: "Each option of @fastify/rate-limit with its counterpart.",
        words: "timeWindow ban allowList continueExceeding errorResponseBuilder",
      },
      {
        path: "migrate/koa-ratelimit",
        title: "koa-ratelimit",
        description: "Each option of koa-ratelimit with its counterpart.",
        words: "duration driver whitelist errorMessage",
      },
      {
        path: "migrate/nestjs-throttler",
        title: "@nestjs/throttler",
        description: "Each option and decorator of @nestjs/throttler with its counterpart.",
        words: "ThrottlerModule ThrottlerGuard SkipThrottle ttl getTracker blockDuration migrate replace",
      },
      {
        path: "migrate/rate-limiter-flexible",
        title: "rate-limiter-flexible",
        description: "What changes when you replace rate-limiter-flexible, and what you gain and lose.",
        words: "RateLimiterRedis points consume insuranceLimiter migrate replace",
      },
      {
        path: "migrate/rate-limiter-flexible-names",
        title: "rate-limiter-flexible, names",
        description: "Each option, method and class of rate-limiter-flexible with its counterpart.",
        words: "keyPrefix storeClient execEvenly whiteList BurstyRateLimiter list",
      },
      {
        path: "migrate/bottleneck",
        title: "Bottleneck, p-queue, p-limit",
        description: "Limits of jobs that run at a time: Bottleneck, p-queue, p-limit and redis-semaphore.",
        words: "maxConcurrent minTime reservoir schedule concurrency semaphore mutex highWater expiration",
      },
    ],
  },
  {
    title: "Reference",
    pages: [
      {
        path: "reference/options",
        title: "Options",
        description: "All options of a limiter, with their defaults.",
        words: "configuration rateLimit createLimiter parameters",
      },
      {
        path: "reference/decision",
        title: "Decision and limiter",
        description: "All members of a decision, and all methods of a limiter.",
        words: "decide check peek settle refund reset block methods result",
      },
      {
        path: "reference/algorithms",
        title: "Algorithms",
        description: "The formula of each algorithm, with its worst case and its memory.",
        words: "formula math proof complexity",
      },
      {
        path: "reference/command-line",
        title: "Command line",
        description: "All commands of `sluice`, with their flags and exit codes.",
        words: "cli sluice command flags terminal",
      },
      {
        path: "reference/replay",
        title: "Replay and suggest",
        description:
          "The options of `sluice rules replay` and `suggest`, and the formats of access logs that they read.",
        words:
          "nginx log_format apache alb cloudfront caddy traefik json simulate dry run backtest ci max-refused",
      },
      {
        path: "reference/service-settings",
        title: "Settings of the service",
        description: "All flags and environment variables of the decision service.",
        words: "environment variables env flags configuration port",
      },
      {
        path: "reference/versions",
        title: "Versions and support",
        description: "Which versions of Node, frameworks, Redis and clients are tested, and what may change.",
        words: "compatibility semver node version support redis version",
      },
      {
        path: "reference/figures",
        title: "Figures",
        description:
          "What a request costs in time and memory, compared with other limiters, and the goals missed.",
        words: "benchmark performance speed overhead comparison",
      },
    ],
  },
  {
    title: "Extend",
    pages: [
      {
        path: "extend/stores",
        title: "Your own store",
        description: "Keep counters in your database, here PostgreSQL, and test the store.",
        words: "custom postgres mongodb sqlite adapter interface backend",
      },
      {
        path: "extend/rule-sources",
        title: "Your own rule source",
        description: "Read rules from your server or database, and share them between many services.",
        words: "custom config consul etcd http api remote configuration provider",
      },
      {
        path: "extend/adapters",
        title: "Your own adapter",
        description: "Mount a limiter in a framework that has no package here.",
        words: "custom framework hapi restify integration middleware",
      },
    ],
  },
]

/** Returns the address of a page below the base: "/protect/" for "protect/README". */
export function addressOf(path: string): string {
  return `/${path}`.replace(/README$/, "")
}

/** The address of the site on its host, with a slash at both ends. */
export const BASE: string = process.env.DOCS_BASE ?? "/"

/** Returns the page at an address, with or without an anchor: "/protect/#login". */
export function pageAt(address: string, base: string = BASE): Page | undefined {
  const path = address.slice(base.length).replace(/#.*$/, "")
  return PAGES.get(path.endsWith("/") ? `${path}README` : path)
}

/** The pages by their path below docs. */
export const PAGES: ReadonlyMap<string, Page> = new Map(
  GROUPS.flatMap(({ pages }) => pages.map((page) => [page.path, page] as const)),
)
