import { PARTS } from "./overview/measurement.ts"

/** What `bench --help` prints. */
export const HELP = `bench [--only PART]... [--quick] [--into FOLDER]
  Throughput, latency, memory, worst case and accuracy of Sluice and its peers: tables, and
  bench.json and bench.html, a page of plots, in bench/results. Some eight minutes; http needs wrk.

  --only PART    ${PARTS.join(", ")}; more than once. Default: all
  --quick        fewer rounds, which show the order of things
  --into FOLDER  where the files are written

bench --behaviour [--only NAME] [--quick] [--json FILE]
  Thirteen drills over HTTP and Redis: who does what is wanted. Some three minutes.

  --only NAME    drills, else contenders, whose name contains this
  --quick        Sluice on Express alone, beside its peers
  --json FILE    every finding

Redis servers are started on ports of their own. How to read what is printed: bench/README.md`
