/**
 * Mutants that behave as the source does, which no test can notice: by path below packages/ and text of the line, the mutators and
 * the reason. Speed is the usual one: a shortcut returns what the long way would.
 */
export const EQUIVALENT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "core/src/stores/memory/counter-table.ts": {
    "readonly #readKey: KeyHash = { low: NO_KEY, high: 0 }": "ObjectLiteral: nothing is no key's word either",
    "if (++this.#writes % WRITES_PER_SWEEP === 0) this.#sweep(nowMs)":
      "UpdateOperator: backwards it comes by as many",
    "if (slot >= 0) segment.block(slot, releaseAtMs)":
      "ConditionalExpression: outside of it a typed array takes nothing",
    "if (slot >= 0) segment.keep(slot, emptyAtMs)":
      "ConditionalExpression: outside of it a typed array takes nothing",
    "return low === key.low && high === key.high ? this.#readSlot : segment.find(key)":
      "ConditionalExpression: it is found again; that both words are compared shows in the operators",
  },
  "core/src/stores/memory/key-hash.ts": {
    "const key = reused ?? { low: 0, high: 0 }":
      "ObjectLiteral: both words are written before they are read, and it is of its shape from the start",
    "if (counter !== lastCounter) {": "ConditionalExpression: it is looked up anew",
    "if (known !== undefined) return known": "ConditionalExpression: it is worked out anew",
    "if (starts.size >= MAX_STARTS) starts.clear()":
      "ConditionalExpression,EqualityOperator: it is a bound of memory that nobody sees",
  },
  "core/src/stores/memory/memory-store.ts": {
    "const isOnly = only !== undefined && requests.length === 1":
      "ConditionalExpression,EqualityOperator: as a list of one it is answered the same, only slower",
    "if (!this.#evictions.isEmpty) this.#report(nowMs)":
      "ConditionalExpression: to report nothing only makes a list",
  },
  "core/src/stores/memory/segment.ts": {
    "if (this.count + 1 > this.capacity * MOST_LOAD) {": "EqualityOperator: a key sooner or later",
    "if (emptyAtS < this.#nothingEmptyBeforeS) this.#nothingEmptyBeforeS = emptyAtS":
      "EqualityOperator: the same instant",
    "if (emptyAtS < this.#roundEmptyAtS) this.#roundEmptyAtS = emptyAtS":
      "EqualityOperator: the same instant",
    "if (nowS < this.#nothingEmptyBeforeS) return 0":
      "ConditionalExpression: it would look, and find nothing",
    "if (slot === 0) this.#beginRound()":
      "ConditionalExpression: it would look for ever, and mostly find nothing",
    "if (this.isUsed(slot)) this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.emptyAtS(slot))":
      "ConditionalExpression: a free slot has 0 there, so it would look again, and find nothing",
    "while (growth >= 1 && this.count < capacityAt(growth - 2) * MOST_LOAD) growth--":
      "EqualityOperator: a key sooner or later",
    "if (looked >= CANDIDATES && this.#refusedUntilS(victim, nowS) === 0) break":
      "EqualityOperator: seventeen do as well",
    "if (looked === MANY_CANDIDATES) victim = this.#newestOr(victim, nowS)":
      "ConditionalExpression: the whole segment would be looked at",
    "if (refusedUntilS !== victimRefusedUntilS) return refusedUntilS < victimRefusedUntilS":
      "EqualityOperator: they are not the same",
    "#beginRound(): void {": "BlockStatement: it would look for ever, and mostly find nothing",
  },
  "core/src/stores/memory/slots.ts": {
    "for (let slot = this.#home(low); ; slot = slot + 1 === end ? 0 : slot + 1) {":
      "ArithmeticOperator: beyond the end there is nothing either",
    "if ((slotHigh & HASH_BITS) === high && halves[at + HASH_LOW] === low) return slot":
      "ArithmeticOperator: it is the first",
    "while (this.isUsed(slot)) slot = slot + 1 === this.capacity ? 0 : slot + 1":
      "ArithmeticOperator: beyond the end nothing is free either",
    "this.#halves[slot * HALVES + HASH_LOW] = key.low": "ArithmeticOperator: it is the first",
    "if (this.#parts !== undefined) this.#parts[hole] = undefined":
      "ConditionalExpression: who takes the slot writes over them; memory holds them until then",
    "if (from[at + HASH_HIGH] === 0) continue": "ConditionalExpression: a free slot makes a free slot",
    "const free = this.freeFor(from[at + HASH_LOW] as number)": "ArithmeticOperator: it is the first",
    "halves[free * HALVES + HASH_LOW] = from[at + HASH_LOW] as number": "ArithmeticOperator: it is the first",
    "if (this.#parts !== undefined) this.#parts[free] = fromParts?.[slot]":
      "OptionalChaining: there were some where there are some",
  },
}
