import { readFileSync } from "node:fs"
import { across, type Diagram, diagram } from "./diagram.ts"
import { arrow, box, lane, text } from "./draw.ts"

const SERVICE = (type: string): RegExp =>
  new RegExp(
    `name: (\\S+) }\nspec:\n${type}  selector: { app: sluice }\n  ports:\n.*, port: (\\d+), targetPort: (\\w+)`,
  )
const PROBE = (name: string): RegExp =>
  new RegExp(`${name}Probe:\\s+{?\\s*httpGet: { path: (\\S+), port: (\\w+) },?\\s+periodSeconds: (\\d+)`)

/** Finds values in a file of deploy/kubernetes. */
function find(file: string, pattern: RegExp): string[] {
  const found = pattern.exec(
    readFileSync(new URL(`../../deploy/kubernetes/${file}`, import.meta.url), "utf8"),
  )
  if (found === null)
    throw new Error(`${file} has nothing like ${pattern}. Change docs/pictures/kubernetes.ts.`)
  return found.slice(1)
}

/** What the picture shows of the manifests. A test compares it with what a parser reads. */
export const MANIFESTS = {
  ports: ["http", "grpc", "operations"].map(
    (name) => find("deployment.yaml", new RegExp(`name: ${name}, containerPort: (\\d+)`))[0],
  ),
  /** The name, the port and the target of each Service: the balanced one, and the headless one. */
  services: [find("services.yaml", SERVICE("")), find("services.yaml", SERVICE("  clusterIP: None\n"))],
  /** The path, the port and the seconds of each probe. */
  probes: ["readiness", "liveness"].map((name) => find("deployment.yaml", PROBE(name))),
  /** The pods, and the use of their CPU above which there are more. */
  scaling: find(
    "autoscaler.yaml",
    /minReplicas: (\d+)\n.*maxReplicas: (\d+)[\s\S]*averageUtilization: (\d+)/,
  ),
  label: find("network-policy.yaml", /podSelector: { matchLabels: { (\S+: "true") }/)[0],
  namespace: find("network-policy.yaml", /metadata.name: (\w+)/)[0],
}

/** Draws the pods of deploy/kubernetes, and who reaches which of their ports. */
export function drawKubernetes(): Diagram {
  const { ports, services, probes, scaling, label, namespace } = MANIFESTS
  const [[http, httpPort], [grpc, grpcPort]] = services as [string[], string[]]
  const [least, most, percent] = scaling
  const probed = probes.map(([path, , seconds]) => `${path} every ${seconds} s`)
  const description =
    `${least} to ${most} pods. Gateways call the Service ${http} on ${httpPort}, which Kubernetes balances. gRPC clients and Envoy ` +
    `resolve the headless Service ${grpc} to every pod, and call port ${grpcPort}. Both need the label ${label}. Prometheus, in the ` +
    `namespace ${namespace}, reads /metrics on ${ports[2]}. The node probes ${probed.join(" and ")}.`
  const rows = [44, 120, 196, 272]
  const caller = (row: number, name: string, line: string): string =>
    box({ x: 24, y: rows[row] ?? 0, width: 172, height: 52 }, "others", [name], [line])
  const port = (y: number, height: number, name: string, number = ""): string =>
    box({ x: 536, y, width: 144, height }, "ours", [`${name} ${number}`], [])
  const middle = (row: number): number => (rows[row] ?? 0) + 26
  return diagram("kubernetes.svg", { title: "The service on Kubernetes", description, height: 400 }, [
    lane({ x: 520, y: 12, width: 176, height: 324 }, `${least} to ${most} pods`),
    caller(0, "Gateways", "HTTP"),
    caller(1, "Envoy, gRPC clients", "round_robin"),
    caller(2, "Prometheus", `namespace ${namespace}`),
    caller(3, "Node", "kubelet"),
    ...[http, grpc].flatMap((name, row) => [
      arrow(across(middle(row), 196, 268), "ours"),
      box(
        { x: 268, y: rows[row] ?? 0, width: 172, height: 52 },
        "ours",
        [`Service ${name}`],
        [row === 0 ? `balances ${httpPort}` : `resolves to each pod`],
      ),
      arrow(across(middle(row), 440, 536), "ours"),
      port(rows[row] ?? 0, 52, row === 0 ? "http" : "grpc", ports[row]),
    ]),
    port(rows[2] ?? 0, 128, "operations", ports[2]),
    arrow(across(middle(2), 196, 536), "others"),
    text([366, middle(2) - 8], "/metrics"),
    arrow(across(middle(3), 196, 536), "others"),
    text([366, middle(3) - 8], probed.join(", ")),
    text([24, 364], `Gateways, Envoy and gRPC clients need the label ${label}.`, { anchor: "start" }),
    text([24, 386], `The autoscaler adds pods above ${percent} % CPU. All pods count in one Redis.`, {
      anchor: "start",
    }),
  ])
}
