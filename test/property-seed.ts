import fc from "fast-check"

// Property tests try the same examples in each run, so that CI has the same result for the same code. To try other
// examples, set SEED to another number. For the wrong inputs, RUNS sets the number of examples.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.SEED ?? 1) })
