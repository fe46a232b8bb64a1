import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { MANIFESTS } from "../../../docs/pictures/kubernetes.ts"
import { ROOT } from "../documents.ts"

// The pictures of the decision service.

const read = (name: string): string => readFileSync(`${ROOT}deploy/kubernetes/${name}`, "utf8")

it("the picture of Kubernetes shows what the manifests contain", () => {
  const [container] = parse(read("deployment.yaml")).spec.template.spec.containers
  const portOf = (wanted: string): string =>
    `${container.ports.find(({ name }: { name: string }) => name === wanted).containerPort}`
  const services = parseAllDocuments(read("services.yaml")).map((document) => document.toJS())
  const { minReplicas, maxReplicas, metrics } = parse(read("autoscaler.yaml")).spec
  const [callers, monitoring] = parse(read("network-policy.yaml")).spec.ingress
  expect(MANIFESTS).toEqual({
    ports: ["http", "grpc", "operations"].map(portOf),
    services: services.map(({ metadata, spec }) => [
      metadata.name,
      `${spec.ports[0].port}`,
      spec.ports[0].targetPort,
    ]),
    probes: [container.readinessProbe, container.livenessProbe].map(({ httpGet, periodSeconds }) => [
      httpGet.path,
      httpGet.port,
      `${periodSeconds}`,
    ]),
    scaling: [minReplicas, maxReplicas, metrics[0].resource.target.averageUtilization].map(String),
    label: `sluice-caller: "${callers.from[0].podSelector.matchLabels["sluice-caller"]}"`,
    namespace: monitoring.from[0].namespaceSelector.matchLabels["kubernetes.io/metadata.name"],
  })
  expect(services.map(({ spec }) => spec.clusterIP)).toEqual([undefined, "None"])
  expect(monitoring.ports).toEqual([{ port: "operations" }])
})
