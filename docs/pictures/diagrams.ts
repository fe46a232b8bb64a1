import { drawDashboard } from "./dashboard.ts"
import { across, type Diagram, diagram, down, MIDDLE } from "./diagram.ts"
import { type Area, arrow, box, lane, type Point, text } from "./draw.ts"
import { drawFigures } from "./figures.ts"
import { drawKubernetes } from "./kubernetes.ts"
import { withoutImplied } from "./layers.ts"
import { layOut } from "./layout.ts"
import { drawLease } from "./leases.ts"
import { drawLogin } from "./login.ts"
import { drawOutage } from "./outage.ts"
import { drawOverload } from "./overload.ts"
import { drawPacing } from "./pacing.ts"
import { PACKAGES, type PackageEntry } from "./packages.ts"
import { drawPenalty } from "./penalty.ts"
import { drawPlans } from "./plans.ts"
import { drawHooks, drawProxies, drawRefusal, drawRequest } from "./request.ts"
import { drawRegions, drawRulesFile, drawStores } from "./stores.ts"
import { drawTerminal } from "./terminal.ts"
import { drawThrottles } from "./throttles.ts"
import { drawWaiting } from "./waiting.ts"

/** Draws all pictures of docs/pictures. Some show runs on a clock that stands still, so nothing waits. */
export async function drawDiagrams(): Promise<readonly Diagram[]> {
  return [
    drawTerminal(),
    drawSystem(),
    drawPackages(PACKAGES),
    drawRequest(),
    drawRefusal(),
    drawProxies(),
    drawHooks(),
    drawStores(),
    drawOutage(),
    drawRegions(),
    drawRulesFile(),
    drawKubernetes(),
    drawOverload(),
    await drawLease(),
    await drawThrottles(),
    await drawPenalty(),
    await drawPacing(),
    await drawLogin(),
    await drawPlans(),
    await drawWaiting(),
    drawDashboard(),
    ...drawFigures(),
  ]
}

/** Milliseconds between two loads of the rules from DynamoDB, by default. */
export const RULES_POLL_MS = 30_000

/** Draws the parts of a system with Sluice: which of them asks which, and when. */
function drawSystem(): Diagram {
  const description =
    "An app with a limiter, or a gateway with the decision service, asks Redis on each request, and reads the rules that " +
    `service owners have registered from DynamoDB every ${RULES_POLL_MS / 1_000} seconds.`
  const center = (y: number, height: number): Area => ({ x: MIDDLE - 52, y, width: 104, height })
  return diagram("system.svg", { title: "A system with Sluice", description, height: 584 }, [
    ...drawSide(
      24,
      "In an app",
      (area) => box(area, "ours", ["Middleware"], ["Express, Fastify,", "Koa, fetch"]),
      "function call",
      ["Limiter", "decides each request"],
    ),
    ...drawSide(
      484,
      "At a gateway",
      (area) => box(area, "others", ["Gateway"], ["nginx, Envoy, HAProxy,", "Caddy, Traefik"]),
      "gRPC or HTTP",
      ["Decision service", "a limiter per service"],
    ),
    box({ x: 24, y: 16, width: 672, height: 56 }, "others", ["Clients"], ["browsers, apps, other services"]),
    box(center(156, 70), "others", ["Handlers"], ["of the app or", "the service"]),
    box(center(262, 52), "others", ["Redis"], ["counters"]),
    box(center(412, 52), "others", ["DynamoDB"], ["rules"]),
    arrow(across(438, 496, MIDDLE + 52), "others"),
    text([MIDDLE + 94, 431], "writes"),
    box({ x: 496, y: 412, width: 188, height: 52 }, "ours", ["Registry"], ["checks the rules"]),
    arrow(down(590, 512, 464), "others"),
    text([582, 493], "when an owner registers rules", { anchor: "end" }),
    box(
      { x: 24, y: 512, width: 672, height: 56 },
      "others",
      ["Service owners"],
      ["call the decision service, or run the command sluice"],
    ),
  ])
}

/** Draws one side of the system: the gate that receives requests, what it asks, and the arrows to other parts. */
function drawSide(
  x: number,
  place: string,
  gate: (area: Area) => string,
  call: string,
  [title, line]: readonly [string, string],
): string[] {
  // Arrows to the center begin at the edge of a box that faces it, and their labels are beside the center.
  const isLeft = x < MIDDLE
  const centerX = MIDDLE + (isLeft ? -52 : 52)
  const labelX = MIDDLE + (isLeft ? -88 : 88)
  const pollX = MIDDLE + (isLeft ? -20 : 20)
  const edgeX = isLeft ? x + 200 : x + 12
  const rulesX = isLeft ? x + 188 : x + 24
  const poll: Point[] = [...across(348, rulesX, pollX), [pollX, 412]]
  const rules = box({ x: x + 24, y: 332, width: 164, height: 32 }, "ours", [], ["rules, in memory"])
  return [
    lane({ x, y: 120, width: 212, height: 268 }, place),
    arrow(down(x + 126, 72, 156), "ours"),
    text([x + 118, 101], "each request", { anchor: "end" }),
    arrow(down(x + 166, 156, 72), "refused"),
    text([x + 174, 101], "429", { anchor: "start", look: "refused" }),
    gate({ x: x + 12, y: 156, width: 188, height: 70 }),
    arrow(across(191, edgeX, centerX), "good"),
    text([labelX, 184], "admitted", { look: "good" }),
    arrow(down(x + 106, 226, 270), "ours"),
    text([x + 114, 253], call, { anchor: "start" }),
    box({ x: x + 12, y: 270, width: 188, height: 106 }, "ours", [title], [line], {
      parts: [rules],
      partsHeight: 44,
    }),
    arrow(across(288, edgeX, centerX), "ours"),
    text([labelX, 281], "each"),
    text([labelX, 304], "request"),
    arrow(poll, "others", { isDashed: true }),
    text([labelX, 341], "every"),
    text([labelX, 364], `${RULES_POLL_MS / 1_000} s`),
  ]
}

/** Draws packages and the imports between them. */
export function drawPackages(packages: readonly PackageEntry[]): Diagram {
  const importers = new Map<string, string[]>()
  for (const { name, imports } of withoutImplied(packages)) {
    const targets = imports.length > 0 ? list(imports) : "no other package of Sluice"
    importers.set(targets, [...(importers.get(targets) ?? []), name])
  }
  const sentences = [...importers].map(
    ([targets, names]) => `${list(names)} ${names.length > 1 ? "import" : "imports"} ${targets}.`,
  )
  const description =
    "The packages of Sluice in layers, with an arrow for each import. An import that other imports imply has no " +
    `arrow. ${sentences.join(" ")}`
  const { boxes, arrows, bottom } = layOut(packages)
  return diagram("packages.svg", { title: "The packages of Sluice", description, height: bottom + 48 }, [
    ...arrows.map(({ points }) => arrow(points, "others")),
    ...boxes.map(({ area, name, job }) => box(area, "ours", name, job)),
    text(
      [MIDDLE, bottom + 30],
      "Each name begins with @sluice/. An arrow points to the package that is imported.",
    ),
  ])
}

function list(names: readonly string[]): string {
  return new Intl.ListFormat("en").format(names)
}
