import { PARTS } from "./overview/measurement.ts"

/** The output of `bench --help`. */
export const HELP = `bench [--only PART]... [--quick | --figures] [--into FOLDER]
  Compares throughput, latency, memory, worst case and accuracy of Sluice and its peers. Prints
  tables, and writes bench.json and bench.html (plots) to bench/results. Takes about eight minutes.
  The part "http" needs wrk.

  --only PART    measure only this part; repeatable. Default: all
                 Parts: ${PARTS.join(", ")}
  --quick        run fewer rounds, which give rough figures
  --figures      also replace the figures in bench/figures.json that this run has measured
  --into FOLDER  write the files to this folder

bench --behaviour [--only NAME] [--quick] [--json FILE]
  Checks the behavior of Sluice and its peers in thirteen drills over HTTP and Redis. Takes about
  three minutes.

  --only NAME    run only drills whose name contains this; if none does, only such contenders
  --quick        run Sluice on Express only, and its peers
  --json FILE    write every finding to this file

The command starts its own Redis servers. bench/README.md explains the output.`
