/**
 * Returns the YAML library. Loads it on the first call, because that takes half as long as loading the core. A limiter
 * reads its rules file synchronously when it is created, so `import()` cannot be used.
 */
export declare function yaml(): typeof import("yaml")
