/** What the load itself costs; it is in every other figure. */
export const NOBODY = "nobody: the load alone"
