import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor"
import { parseRuleDocument } from "@sluice/rules"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { ConfigMap } from "kubernetes-models/v1/ConfigMap"
import { Secret } from "kubernetes-models/v1/Secret"
import { Service } from "kubernetes-models/v1/Service"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { createCommand } from "../../packages/service/src/program/settings/command.ts"
import { readSettings, unknownVariables } from "../../packages/service/src/program/settings/read-settings.ts"
import { ROWS, SETTINGS, type Settings } from "../../packages/service/src/program/settings/settings-table.ts"
import { blocksTestedBy } from "../docs/shown.ts"

// Compares the manifests of deploy/kubernetes with the settings of the program and with each other.

const FOLDER = fileURLToPath(new URL("../../deploy/kubernetes/", import.meta.url))
const IMAGE = readFileSync(new URL("../../packages/service/Dockerfile", import.meta.url), "utf8")
const read = (name: string): string => readFileSync(FOLDER + name, "utf8")

/** An entry of a list of ports, volumes, mounts or variables in a manifest. */
interface Entry {
  readonly name: string
  readonly containerPort?: number
  readonly port?: number
  readonly targetPort?: string
  readonly configMap?: { readonly name: string }
}

/** The documents of a file. Their form is checked by the tests below. */
const documentsOf = (name: string) =>
  parseAllDocuments(read(name)).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS()
  })
const kustomization = parse(read("kustomization.yaml"))
const manifests = (kustomization.resources as string[]).flatMap(documentsOf)
const only = (kind: string) => {
  const found = manifests.filter((each) => each.kind === kind)
  expect(found, kind).toHaveLength(1)
  return found[0]
}
const deployment = only("Deployment").spec
const pod = deployment.template.spec
const [container] = pod.containers
const LABELS = { app: "sluice" }
const portOf = (address: string): number => Number(address.split(":")[1])
const ports: Readonly<Record<string, number>> = {
  grpc: portOf(SETTINGS.grpc.otherwise as string),
  http: portOf(SETTINGS.http.otherwise as string),
  operations: portOf(SETTINGS.operations.otherwise as string),
}

/** Reads the settings as the program in the container does, with the files of its volumes. */
function settingsOf(secrets: Readonly<Record<string, string>>): Settings {
  const folder = mkdtempSync(join(tmpdir(), "sluice-kubernetes-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const ofImage = Object.fromEntries(
    [...IMAGE.matchAll(/\b(SLUICE_\w+_ADDRESS)=(\S+)/g)].map((m) => m.slice(1, 3)),
  )
  const env: Record<string, string> = { ...ofImage }
  for (const { name, value } of container.env as { name: string; value: string }[]) env[name] = value
  const mount = container.volumeMounts.find((each: Entry) => each.name === "secrets").mountPath
  for (const [name, value] of Object.entries(secrets)) writeFileSync(join(folder, name), value)
  for (const [name, value] of Object.entries(env)) env[name] = value.replace(mount, folder)
  expect(unknownVariables(env)).toEqual([])
  // commander reads the variables of the process.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const command = createCommand(
    "0",
    () => undefined,
    () => undefined,
  )
  return readSettings(command.parse([], { from: "user" }), process.env)
}

const PUBLISHED = [
  ...[ConfigMap, Deployment, HorizontalPodAutoscaler, NetworkPolicy, PodDisruptionBudget, Secret, Service],
  ServiceMonitor,
]

/**
 * Returns how a manifest violates the published schema of its kind: a wrong value, or the members that the schema does
 * not know. A validator reads every member that it knows, so a member that was not read is unknown.
 */
function violationsOf(manifest: { readonly kind: string; readonly apiVersion: string }): string[] {
  const published = PUBLISHED.find(
    ({ kind, apiVersion }) => kind === manifest.kind && apiVersion === manifest.apiVersion,
  )
  const unread = new Set<string>()
  const watch = (value: unknown, path: string): unknown => {
    if (typeof value !== "object" || value === null) return value
    const watched = Object.entries(value).map(([name, member]) => {
      unread.add(`${path}.${name}`)
      return [name, watch(member, `${path}.${name}`)]
    })
    const copy: object = Array.isArray(value)
      ? watched.map(([, member]) => member)
      : Object.fromEntries(watched)
    return new Proxy(copy, {
      get(target, name) {
        unread.delete(`${path}.${String(name)}`)
        return Reflect.get(target, name)
      },
    })
  }
  try {
    if (published === undefined) throw new Error(`no schema of ${manifest.kind} is known`)
    Reflect.apply(published.prototype.validate, watch(manifest, ""), [])
  } catch (error) {
    return [`${error}`]
  }
  return [...unread]
}

describe("the manifests in deploy/kubernetes", () => {
  it("are the files that docs/service/deploy.md applies, and kubectl can build them", () => {
    const [command] = blocksTestedBy("test/service/kubernetes.test.ts", "docs/service/deploy.md", 1)
    expect(command?.text.trim()).toBe("kubectl apply --kustomize deploy/kubernetes")
    for (const name of kustomization.resources) expect(existsSync(FOLDER + name), name).toBe(true)
    const kubectl = spawnSync("kubectl", ["kustomize", FOLDER], { encoding: "utf8" })
    if (kubectl.error !== undefined) {
      console.warn("Not tested: kubectl is not installed, so the manifests are only parsed.")
      return
    }
    expect([kubectl.status, kubectl.stderr]).toEqual([0, ""])
    const built = parseAllDocuments(kubectl.stdout).map((document) => document.toJS())
    expect(built.map(({ kind }) => kind).toSorted()).toEqual(
      ["ConfigMap", ...manifests.map(({ kind }) => kind)].toSorted(),
    )
    const image = built.find(({ kind }) => kind === "Deployment").spec.template.spec.containers[0].image
    expect(image).toBe("registry.example/sluice-service:0.1.0")
    for (const each of built.filter(({ kind }) => kind !== "ConfigMap")) {
      const original = manifests.find(
        ({ kind, metadata }) => kind === each.kind && metadata.name === each.metadata.name,
      )
      if (each.kind !== "Deployment") expect(each).toEqual(original)
    }
  })

  it("satisfy the published schemas of Kubernetes, which reject a misspelled member or a wrong value", () => {
    expect(manifests.map((each) => [each.kind, violationsOf(each)])).toEqual(
      manifests.map(({ kind }) => [kind, []]),
    )
    const autoscaler = only("HorizontalPodAutoscaler")
    const broken = (spec: object) => violationsOf({ ...autoscaler, spec: { ...autoscaler.spec, ...spec } })
    expect(broken({ maxReplica: 6 })).toEqual([".spec.maxReplica"])
    expect(broken({ maxReplicas: "6" })).toEqual([expect.stringContaining("maxReplicas must be integer")])
  })

  it("select the same pods everywhere", () => {
    expect(deployment.selector.matchLabels).toEqual(LABELS)
    expect(deployment.template.metadata.labels).toEqual(LABELS)
    expect(pod.topologySpreadConstraints[0].labelSelector.matchLabels).toEqual(LABELS)
    expect(only("PodDisruptionBudget").spec.selector.matchLabels).toEqual(LABELS)
    expect(only("NetworkPolicy").spec.podSelector.matchLabels).toEqual(LABELS)
    for (const { spec } of manifests.filter(({ kind }) => kind === "Service"))
      expect(spec.selector).toEqual(LABELS)
    expect(only("HorizontalPodAutoscaler").spec.scaleTargetRef.name).toBe(only("Deployment").metadata.name)
  })

  it("use the default ports of the program, and a headless service only for gRPC", () => {
    const named = Object.fromEntries(container.ports.map((each: Entry) => [each.name, each.containerPort]))
    expect(named).toEqual(ports)
    const services = manifests.filter(({ kind }) => kind === "Service")
    const published = services.flatMap(({ spec }) =>
      spec.ports.map((each: Entry) => [each.targetPort, each.port, spec.clusterIP]),
    )
    expect(published).toEqual([
      ["http", ports.http, undefined],
      ["grpc", ports.grpc, "None"],
    ])
    const [callers, monitoring] = only("NetworkPolicy").spec.ingress
    expect(callers.ports).toEqual([{ port: "grpc" }, { port: "http" }])
    expect(monitoring.ports).toEqual([{ port: "operations" }])
  })

  it("probe the paths of the operations port, and restart no instance because of Redis or its rules", () => {
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "operations" })
    expect(container.livenessProbe.httpGet).toEqual({ path: "/livez", port: "operations" })
    expect(SETTINGS.operations.says).toMatch(/\/livez.*\/readyz/)
  })

  it("contain only valid settings, except for the token, which must be replaced", () => {
    const secrets: Readonly<Record<string, string>> = only("Secret").stringData
    expect(() => settingsOf(secrets)).toThrow(/^SLUICE_DECIDE_TOKENS/)
    const token = '{"*": "0123456789abcdef"}'
    const settings = settingsOf({ ...secrets, "decide-tokens": token })
    expect(settings).toMatchObject({
      rules: "/etc/sluice/rules.yaml",
      instances: 2,
      redis: ["redis://redis:6379"],
    })
    for (const door of ["grpc", "http", "operations"] as const)
      expect(settings[door]).toMatchObject({ host: "0.0.0.0", port: ports[door] })
    // Kubernetes must not kill an instance that still responds.
    const drainMs = (settings.drainPauseMs ?? 0) + settings.drainMs
    expect(drainMs).toBe(25_000)
    // Add 3 s, because sending the last metrics takes up to 3 s.
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(drainMs + 3_000)
  })

  it("mount the rules as a folder without a suffix, so that a change of the rules restarts no instance", () => {
    const [{ name, files }] = kustomization.configMapGenerator
    expect(kustomization.generatorOptions.disableNameSuffixHash).toBe(true)
    const volume = pod.volumes.find((each: Entry) => each.configMap?.name === name).name
    const mount = container.volumeMounts.find((each: Entry) => each.name === volume)
    expect(mount.subPath).toBeUndefined()
    const variable = container.env.find((each: Entry) => each.name === SETTINGS.rules.variable)
    expect(variable.value).toBe(`${mount.mountPath}/${files[0]}`)
    expect(parseRuleDocument(parse(read(files[0])))).toHaveLength(1)
  })

  it("set --instances to the minimum number of replicas, and run as an unprivileged user", () => {
    const { minReplicas, maxReplicas } = only("HorizontalPodAutoscaler").spec
    const instances = container.env.find((each: Entry) => each.name === SETTINGS.instances.variable)
    expect(Number(instances.value)).toBe(minReplicas)
    expect(maxReplicas).toBeGreaterThan(minReplicas)
    expect(deployment.replicas).toBeUndefined()
    expect(IMAGE).toContain("USER node")
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1_000 })
    expect(container.securityContext.capabilities.drop).toEqual(["ALL"])
    expect(pod.enableServiceLinks).toBe(false)
    // A secret must be a file, not a value in the manifest of the pod.
    const secrets = ROWS.flatMap(([, { flags, variable }]) => (flags === undefined ? [variable] : []))
    for (const { name } of container.env) expect(secrets).not.toContain(name)
  })
})

describe("the component prometheus in deploy/kubernetes", () => {
  const component = parse(read("prometheus/kustomization.yaml"))
  const [service, monitor] = documentsOf("prometheus/monitor.yaml")
  const [patch] = parse(read("prometheus/autoscaler.yaml"))
  const [rule] = parse(read("prometheus/adapter-values.yaml")).rules.custom

  it("satisfies the published schemas of Kubernetes and of the Prometheus operator", () => {
    expect(component.resources).toEqual(["monitor.yaml"])
    expect([violationsOf(service), violationsOf(monitor)]).toEqual([[], []])
    const endpoints = [{ ...monitor.spec.endpoints[0], pth: "/metrics" }]
    expect(violationsOf({ ...monitor, spec: { ...monitor.spec, endpoints } })).toEqual([
      ".spec.endpoints.0.pth",
    ])
    const { spec, ...autoscaler } = only("HorizontalPodAutoscaler")
    expect([patch.op, patch.path]).toEqual(["add", "/spec/metrics/-"])
    expect(
      violationsOf({ ...autoscaler, spec: { ...spec, metrics: [...spec.metrics, patch.value] } }),
    ).toEqual([])
  })

  it("scrapes the operations port of every pod", () => {
    expect(service.metadata.labels).toEqual(monitor.spec.selector.matchLabels)
    expect(service.spec).toMatchObject({ clusterIP: "None", selector: LABELS })
    const [port] = service.spec.ports
    expect([port.port, port.targetPort]).toEqual([ports.operations, "operations"])
    expect(monitor.spec.endpoints.map((each: { port: string }) => each.port)).toEqual([port.name])
  })

  it("scales by the metric that the adapter computes, before an instance refuses calls", () => {
    const { metric, target } = patch.value.pods
    expect(rule.name.as).toBe(metric.name)
    expect(Number(target.averageValue)).toBeLessThan(0.75 * Number(SETTINGS.maxInFlight.otherwise))
  })

  it("is built by kubectl, if it is installed", () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-kubernetes-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    cpSync(FOLDER, folder, { recursive: true })
    const whole = join(folder, "kustomization.yaml")
    writeFileSync(whole, readFileSync(whole, "utf8").replace("# components:", "components:"))
    const kubectl = spawnSync("kubectl", ["kustomize", folder], { encoding: "utf8" })
    if (kubectl.error !== undefined) return
    expect([kubectl.status, kubectl.stderr]).toEqual([0, ""])
    const built = parseAllDocuments(kubectl.stdout).map((document) => document.toJS())
    expect(built.flatMap(violationsOf)).toEqual([])
    const autoscaler = built.find(({ kind }) => kind === "HorizontalPodAutoscaler")
    expect(autoscaler.spec.metrics.map(({ type }: { type: string }) => type)).toEqual(["Resource", "Pods"])
    expect(built.map(({ kind }) => kind)).toContain("ServiceMonitor")
  })
})
