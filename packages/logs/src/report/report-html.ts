import { createHash } from "node:crypto"
import plotStyle from "uplot/dist/uPlot.min.css?text"
import license from "uplot/LICENSE?text"
import base from "../../../../pages/base.css?text"
import { count, counted, percent } from "../quantities.ts"
import type { ReplayResult } from "../replay/result.ts"
import { shownName, time, visible } from "./format.ts"
import { type Html, type HtmlContent, html, jsonForScript, markupOf, trusted } from "./html.ts"
import script from "./page/main.ts?script"
import { DATA_ID, type PageData } from "./page-data.ts"
import { clientsSection } from "./sections/clients-section.ts"
import {
  againstSection,
  algorithmsSection,
  boundsSection,
  liveSection,
} from "./sections/comparison-sections.ts"
import { logSection } from "./sections/log-section.ts"
import { refusedOf, rulePlotsSection, timelineSection } from "./sections/plots-sections.ts"
import { rulesSection } from "./sections/rules-section.ts"
import style from "./style.css?text"

/**
 * Returns the report of a replay as one HTML file that loads no other resources. The HTML contains all tables, and
 * the script only adds plots and sorting.
 */
export function replayReport(result: ReplayResult): string {
  const styles = [plotStyle, base, style].join("\n")
  const { against, algorithms, live, bounds, problems } = result
  const [mainLimit, ...notes] = result.notes
  return markupOf(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policyFor(styles)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Replay of ${counted(result.rules.length, "rule")}</title>
<style>${trusted(styles)}</style>
</head>
<body>
<header>
<h1>Replay of ${counted(result.rules.length, "rule")}</h1>
<p class="subtitle">${subtitle(result)}</p>
${mainLimit !== undefined && html`<p class="main-limit">${visible(mainLimit)}</p>`}
${
  problems.length > 0 &&
  html`<ul class="problems">${problems.map((problem) => html`<li><strong class="bad">✗ ${visible(problem)}</strong></li>`)}</ul>`
}
${keyFigures(result)}
</header>
<main>
${rulesSection(result)}
${against !== undefined && againstSection(against)}
${algorithms !== undefined && algorithmsSection(algorithms)}
${live !== undefined && liveSection(live)}
${bounds.length > 0 && boundsSection(bounds)}
${timelineSection(result)}
${rulePlotsSection(result)}
${clientsSection(result.clients)}
${
  notes.length > 0 &&
  html`<section aria-labelledby="notes"><h2 id="notes">Notes</h2>
<ul>${notes.map((note) => html`<li>${visible(note)}</li>`)}</ul></section>`
}
${logSection(result.log)}
</main>
<footer><p>Written by <code>sluice rules replay</code>. All times are in UTC.</p>
<details><summary>License of uPlot, which draws the plots</summary><pre tabindex="0">${license}</pre></details></footer>
<script type="application/json" id="${DATA_ID}">${jsonForScript(pageData(result))}</script>
<script>${trusted(script)}</script>
</body>
</html>
`)
}

/** The policy allows only the style and the script of the report, by their hashes. */
function policyFor(styles: string): string {
  const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
  return [
    "default-src 'none'",
    `style-src ${hash(styles)}`,
    `script-src ${hash(script)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "trusted-types 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ")
}

function subtitle({ log }: ReplayResult): HtmlContent {
  const [first, ...others] = log.files
  return html`${first !== undefined && html`<bdi>${shownName(first.name)}</bdi>`}${
    others.length > 0 && ` and ${counted(others.length, "more file")}`
  }${log.from !== null && log.to !== null && html`, ${time(log.from)} to ${time(log.to)} UTC`}`
}

function keyFigures({ total, bounds, log }: ReplayResult): Html {
  const failed = bounds.filter(({ holds }) => !holds).length
  const figures: [term: string, value: string, detail: string][] = [
    ["Requests", count(total.seen), ""],
    ["Requests refused", count(total.refused), percent(total.refused, total.seen)],
    ["Clients", count(total.clients.seen), ""],
    ["Clients refused", count(total.clients.refused), percent(total.clients.refused, total.clients.seen)],
  ]
  if (log.unparsed > 0)
    figures.push(["Lines unparsed", count(log.unparsed), percent(log.unparsed, log.lines)])
  return html`<dl class="figures">${figures.map(
    ([term, value, detail]) =>
      html`<div><dt>${term}</dt><dd>${value}${detail !== "" && html` <small>${detail}</small>`}</dd></div>`,
  )}${
    bounds.length > 0 &&
    html`<div><dt>Bounds</dt><dd>${
      failed === 0
        ? html`<span class="good">✓ ${bounds.length === 1 ? "holds" : "all hold"}</span>`
        : html`<span class="bad">✗ ${failed} exceeded</span>`
    } <small>of ${bounds.length}</small></dd></div>`
  }</dl>`
}

function pageData({ timeline, rules }: ReplayResult): PageData {
  const { from, stepMs, admitted, refused } = timeline
  return {
    timeline: { from, stepMs, admitted, refused },
    rules: rules.map(({ name, peaks }) => ({
      name: shownName(name),
      refused: refusedOf(timeline, name),
      peaks,
    })),
  }
}
