import { expect, it } from "vitest"
import { exactly, type Measurement } from "./measurement.ts"
import { pageOf } from "./page.ts"
import { drawPlots } from "./plots.ts"

const MACHINE = {
  cpu: "a core <per process>",
  cores: 2,
  memoryGb: 4,
  system: "linux",
  node: "20.19.0",
  load: 0,
  versions: { koa: "3.0.0" },
}
const throughput = (contender: string, workload: string, median: number): Measurement => ({
  part: "redis",
  workload,
  inFlight: 64,
  contender,
  isOurs: contender === "sluice",
  quantity: "decisions a second",
  median,
  least: median / 2,
  most: median * 2,
  samples: 3,
})

it("drawPlots draws a picture for each measured quantity, with the names of contenders and workloads", async () => {
  const plots = await drawPlots([
    throughput("sluice", "hot", 100),
    throughput("a peer", "hot", 50),
    throughput("sluice", "zipf", 20),
  ])
  expect(plots.map(({ title }) => title)).toEqual(["Throughput through Redis"])
  const picture = plots[0]?.picture
  for (const text of ["sluice", "a peer", "hot, 64", "zipf, 64", "decisions a second"])
    expect(picture).toContain(`>${text}</text>`)
})

it("drawPlots draws a longer bar for a larger value", async () => {
  const [plot] = await drawPlots([throughput("sluice", "hot", 100), throughput("a peer", "hot", 50)])
  const lengthOf = (contender: string): number => {
    const bar = new RegExp(`contender: ${contender}"[^>]*d="M0,[\\d.]+h([\\d.]+)`).exec(plot?.picture ?? "")
    return Number(bar?.[1])
  }
  expect(lengthOf("sluice") / lengthOf("a peer")).toBeCloseTo(2, 5)
})

it("drawPlots marks the guaranteed bound of a measurement that has one", async () => {
  const bound: Measurement = {
    part: "bound",
    workload: "a greedy client",
    contender: "fixed-window",
    isOurs: true,
    quantity: "most admitted in any window, times the limit",
    ...exactly(1.9),
  }
  const marks = async (measurement: Measurement): Promise<number> =>
    (await drawPlots([measurement]))[0]?.picture.split("#cf222e").length ?? 0
  expect(await marks({ ...bound, promised: 2 })).toBeGreaterThan(await marks(bound))
})

it("drawPlots draws the accuracy of several algorithms over the load in one picture", async () => {
  const plots = await drawPlots(
    ["sliding-log", "token-bucket"].flatMap((contender) =>
      [0.5, 10].map((load): Measurement => {
        const quantity = "share of what an exact log admits"
        return {
          part: "accuracy",
          workload: `poisson ${load}`,
          contender,
          isOurs: true,
          quantity,
          ...exactly(1),
        }
      }),
    ),
  )
  expect(plots).toHaveLength(1)
  expect(plots[0]?.picture).toContain("token-bucket")
})

it("pageOf describes the machine above the pictures, and escapes HTML", () => {
  const page = pageOf({ machine: MACHINE, steadiness: "It was steady." }, [
    { title: "A & B", picture: "<svg/>" },
  ])
  expect(page).toContain("a core &lt;per process>, 2 cores")
  expect(page).toContain("It was steady.")
  expect(page).toContain("<h2>A &amp; B</h2>\n<svg/>")
})
