/** A value, or a promise of one: who can answer at once need not make anybody wait. */
export type MaybePromise<T> = T | Promise<T>
