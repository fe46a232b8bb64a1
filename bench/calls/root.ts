/** The environment variable that names the tree whose sources are counted. */
export const ROOT = "SLUICE_BENCH_SOURCES"
