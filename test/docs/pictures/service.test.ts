import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { MANIFESTS } from "../../../docs/pictures/kubernetes.ts"
import { PLACES, sharesOf } from "../../../docs/pictures/overload.ts"
import { ROOT } from "../documents.ts"

// The pictures of the decision service.

const read = (name: string): string => readFileSync(`${ROOT}deploy/kubernetes/${name}`, "utf8")

it("the picture of Kubernetes shows the contents of the manifests", () => {
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

describe("the picture of overload", () => {
  it("shows the default of --max-in-flight, and that a lone gateway gets three quarters of it", () => {
    expect(PLACES).toBe(1_000)
    expect(sharesOf({ name: "", callers: 1 })).toEqual([750])
    expect(readFileSync(`${ROOT}docs/service/deploy.md`, "utf8")).toContain(
      "a lone gateway gets three quarters",
    )
  })

  it("shows equal shares for simultaneous callers, and free places for a later caller", () => {
    expect(sharesOf({ name: "", callers: 4 })).toEqual([231, 231, 231, 230])
    expect(sharesOf({ name: "", callers: 2, isOneByOne: true })).toEqual([750, 187])
  })
})
