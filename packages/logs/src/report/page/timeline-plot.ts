import { drawSteps, refusedSeries, stackedSeries } from "../../../../../pages/browser/steps-plot.ts"
import { count, percent } from "../../quantities.ts"
import type { PageData } from "../page-data.ts"

type TimelineSteps = PageData["timeline"]

/** Draws the requests that all rules together admitted and refused, on top of each other. */
export function drawRequests(target: HTMLElement, { from, stepMs, admitted, refused }: TimelineSteps): void {
  const all = admitted.map((requests, i) => requests + (refused[i] ?? 0))
  const describe = (i: number): string =>
    `${count(admitted[i] ?? 0)} admitted, ${count(refused[i] ?? 0)} refused (${percent(refused[i] ?? 0, all[i] ?? 0)})`
  const steps = { from, stepMs, lists: [all, admitted], describe }
  drawSteps(target, "Requests admitted and refused over time", stackedSeries(), steps)
}

/** Draws the requests that one rule refused. */
export function drawRefused(
  target: HTMLElement,
  { from, stepMs }: TimelineSteps,
  { name, refused }: PageData["rules"][number],
): void {
  const describe = (i: number): string => `${count(refused[i] ?? 0)} refused`
  const steps = { from, stepMs, lists: [refused], describe }
  drawSteps(target, `Requests that ${name} refused over time`, refusedSeries(), steps)
}
