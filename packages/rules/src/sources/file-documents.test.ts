import { atOnce } from "@sluice/core/rules"
import { expect, test } from "vitest"
import { fileDocuments } from "./file-documents.ts"
import { documentsIn } from "./read-documents.ts"

const documentsOf = (values: readonly unknown[]) =>
  fileDocuments(atOnce(documentsIn(JSON.stringify(values), "json")), "rules.json")
const rule = { limit: 5, window: "1m" }
const limits = (values: unknown[], service: string) =>
  documentsOf(values)
    .rulesOf(service)
    .rules.map((r) => r.limit)
const told = (values: unknown[], service: string) =>
  documentsOf(values)
    .rulesOf(service)
    .problems.map(({ path, message }) => `${path}: ${message}`)

test("a service uses its own document, or else the document without service_id, or else no rules", () => {
  const several = [{ service_id: "a", rules: [rule] }, { rules: { ...rule, limit: 9 } }]
  expect(limits(several, "a")).toEqual([5])
  expect(limits(several, "b")).toEqual([9])
  const named = [
    { service_id: "a", rules: [rule] },
    { service_id: 7, version: 3, rules: [] },
  ]
  expect(documentsOf(named).rulesOf("7")).toEqual({ rules: [], problems: [], version: 3 })
  expect(documentsOf(named).rulesOf("b")).toEqual({ rules: [], problems: [] })
})

test("a single document for another service is a problem, because this service would have no limits", () => {
  expect(told([{ service_id: "a", rules: [rule] }], "b")).toEqual([
    'service_id: "a" is not the service "b", which therefore has no rules',
  ])
})

test("problems of a document are reported only to its service, with their place", () => {
  const values = [{ service_id: "a", rules: [{ ...rule, limit: 0 }] }, { rules: [rule, { limit: 5 }] }]
  expect(told(values, "a")).toEqual(['service "a" rules[0].limit: 0 is not a limit'])
  expect(told(values, "b")).toEqual(["[1].rules[1].window: is missing, but limit is given"])
  expect(told([{ rules: [{ ...rule, limit: 0 }] }], "a")).toEqual(["rules[0].limit: 0 is not a limit"])
})

test("a document whose service is unknown contributes no rules and is reported to every service", () => {
  const values = [5, { service_id: [], rules: [rule] }, { service_id: "a", rules: [rule] }]
  const problems = ["[0]: 5 is not a rule document", "[1].service_id: [] is not a service id"]
  expect(told(values, "a")).toEqual(problems)
  expect(told(values, "b")).toEqual(problems)
  expect(limits(values, "a")).toEqual([5])
  expect(limits(values, "b")).toEqual([])
  expect(told([{ service_id: "a", Service_id: "b", rules: [rule] }], "a")).toEqual([
    'Service_id: is another name for "service_id", which is given too',
  ])
})

test("a second document for a service is reported only to that service", () => {
  const values = [
    { rules: [rule] },
    { service_id: "a", rules: [rule] },
    { serviceId: "a", rule },
    { rules: [] },
  ]
  expect(limits(values, "a")).toEqual([5])
  expect(limits(values, "b")).toEqual([5])
  expect(told(values, "a")).toEqual(['[2]: is the second document for service "a", after [1]'])
  expect(told(values, "b")).toEqual(["[3]: is the second document without service_id, after [0]"])
})
