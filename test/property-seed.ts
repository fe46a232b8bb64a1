import fc from "fast-check"

// Properties try the same examples in each run, so that CI gives the same result for the same code. To search further,
// set SEED to another number, and RUNS for the wrong inputs.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.SEED ?? 1) })
