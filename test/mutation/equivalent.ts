/**
 * Mutants that behave like the source, so that no test can notice them. Keys are the path below packages/ and the
 * text of the line. Values are the mutators and the reason. The usual reason is a shortcut that only saves time,
 * because the slow path returns the same result.
 */
export const EQUIVALENT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "core/src/algorithms/exact-counts.ts": {
    "if (count === 0) return 0":
      "ConditionalExpression: a share of zero units is zero, so this shortcut is only faster for windows without a previous count",
    "if (product <= Number.MAX_SAFE_INTEGER) return (offset + 1) * unitMs":
      "ConditionalExpression,EqualityOperator: the search by counting upward returns the same offset, only more slowly",
    "if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole)":
      "ConditionalExpression,EqualityOperator: the division in two parts returns the same result, only more slowly",
  },
  "core/src/algorithms/most-in-use.ts": {
    "if (units <= ceilingOf(policy)) return false":
      "ConditionalExpression,EqualityOperator: the maximum of units in use is at least the ceiling",
  },
  "core/src/algorithms/packed-counts.ts": {
    'if (packed === "") return 0':
      "ConditionalExpression,StringLiteral: an empty string parses as NaN, which leads to the same result",
    "while (length > 0 && numbers[length - 1] === 0) length--":
      "ConditionalExpression,EqualityOperator: index -1 contains no number, but reading it is slow",
    'return Buffer.from(text, "latin1").toString("latin1")':
      "StringLiteral: all encodings agree for these characters, and this one is the fastest",
  },
  "core/src/algorithms/packed-log.ts": {
    "width === unitsWidth ? entries : widened(entries, timeWidth, unitsWidth, width)":
      "ConditionalExpression: widening entries by zero digits returns the same entries, only more slowly",
  },
  "core/src/algorithms/sliding-log.ts": {
    "if (state === undefined || state.current === 0 || !state.parts) return empty(nowMs)":
      "ConditionalExpression: a state without units has no entries, unless sums above 2^53 were rounded",
    "if (cost > ceiling) return Number.POSITIVE_INFINITY":
      "ConditionalExpression: the search finds that even removing all entries does not free enough units, only more slowly",
    "for (let place = FIRST; place < log.end; place += entryWidth(log)) {":
      "EqualityOperator: the position at the end contains no units",
    "while (place < log.end) {": "EqualityOperator: the position at the end contains no units",
    "if (there > rest) break":
      "EqualityOperator: an entry with exactly this number of units becomes empty in both cases",
  },
  "core/src/algorithms/sliding-window.ts": {
    "if (state.startMs > startMs) {":
      "EqualityOperator: the state of the same window was returned before this line",
    "if (previous === 0) return true":
      "ConditionalExpression: a share of zero units is zero, so this shortcut is only faster for windows without a previous count",
    "if (previous === 0) return current":
      "ConditionalExpression: a share of zero units is zero, so this shortcut is only faster for windows without a previous count",
  },
  "core/src/algorithms/sub-windows.ts": {
    "if (by < 0) return broughtBack(previous + current, parts, startMs, -by)":
      "EqualityOperator: the state of the same sub-window was returned before this line",
    "for (let index = kept; index < countOf(parts); index++) left -= numberAt(parts, index)":
      "EqualityOperator: positions after the last sub-window read as 0",
    "for (let index = 0; index < countOf(parts); index++) {":
      "EqualityOperator: positions after the last sub-window read as 0",
  },
  "core/src/decision/decision-record.ts": {
    "if (checks.length > 1 && binding.allowed) {":
      "ConditionalExpression,EqualityOperator: the result for a single check is the same",
  },
  "core/src/decision/explain-answer.ts": {
    "if (refusal !== undefined || penalty !== undefined) return withPenalties(ruleChecks.filter(isCounted))":
      "ConditionalExpression,EqualityOperator: the filtered list contains the same requests",
    "if (storeChecks !== ruleChecks)":
      "ConditionalExpression: the slow path explains the decision in the same way",
    "ruleChecks.length === 1 && counted !== undefined":
      "ConditionalExpression: a list with one check is explained in the same way",
  },
  "core/src/decision/explain.ts": {
    "const hard = policy.extra === undefined ? policy : hardOf(policy)":
      "ConditionalExpression: the mutant only copies a policy that has no extra units",
  },
  "core/src/decision/local-fallback.ts": {
    "if (this.#instances === 1) return ruleCheck":
      "ConditionalExpression: a single instance receives the whole limit, so the mutant only copies the rule check",
  },
  "core/src/decision/corrections.ts": {
    "return refunds.filter(({ units }) => units > 0)":
      "EqualityOperator: a refund of zero units has no effect",
  },
  "core/src/http/guard/late-place.ts": {
    "if (path === undefined) return undefined":
      "ConditionalExpression: without a path, no layer is related to the limiter, so the result is undefined too",
  },
  "core/src/http/guard/mount-check.ts": {
    "if (newest !== undefined) warnSameNames(warner, mount)":
      "ConditionalExpression: a lone mount cannot share a name with another mount, so no warning is logged",
  },
  "core/src/http/guard/mount-outcome.ts": {
    "if (this.lines === undefined) {": "ConditionalExpression: the mutant writes the same lines again",
    "return rejection === undefined":
      "ConditionalExpression: callers treat an undefined rejection like an absent one",
  },
  "core/src/http/guard/route-rule.ts": {
    'const { path = "", besides = [] } = route':
      "ArrayDeclaration: no rule contains a member with the mutant's string as its name",
    "const { label, counter = label, besides = [], isAlone = false } = route":
      "ArrayDeclaration: no rule contains a member with the mutant's string as its name",
  },
  "core/src/http/guard/writers.ts": {
    'return { name, limit: typeof limit === "number" ? limit : undefined, windowMs, unit: counts, shadow }':
      "ConditionalExpression,StringLiteral: if the limit is unknown, each decision writes the same text",
  },
  "core/src/http/headers/header-values.ts": {
    "while (rest >= 1000) {":
      "ConditionalExpression,EqualityOperator: an ungrouped number is written in the same way",
  },
  "core/src/http/headers/members.ts": {
    "if (checks.length === 1) {":
      "ConditionalExpression,EqualityOperator,BlockStatement: a list with one member is written in the same way",
    "if (first?.line !== undefined && check.limit === first.limit && check.policy === first.name) {":
      "ConditionalExpression,BlockStatement: the slow path writes the same text",
    "return check.allowed": "ConditionalExpression: the mutant writes the same text again",
    "return check.limit === text.limit":
      "ConditionalExpression: the prepared line equals the line that the mutant writes",
    "if (lastRefusal === undefined || lastRefusal.seconds !== seconds || lastRefusal.cost !== cost) {":
      "ConditionalExpression: the mutant writes the same text again",
    "if (seconds !== lastSeconds) {": "ConditionalExpression: the mutant only writes the same text again",
    'return member.charCodeAt(0) === QUOTE ? member : ""':
      "ConditionalExpression,StringLiteral: every member begins with a quote",
  },
  "core/src/http/headers/single-values.ts": {
    "const limit = check.limit === text.ownLimit ? text.ownLimitText : String(fieldInteger(check.limit))":
      "ConditionalExpression: the mutant creates the same value for each request",
    'ownLimitText: limit === undefined ? "" : String(fieldInteger(limit)),':
      "ConditionalExpression,StringLiteral: the text for an undefined limit is never used",
  },
  "core/src/http/rejection.ts": {
    "if (text === undefined || text.tellsInstant) return jsonRejection(decision, seconds, nowMs)":
      "ConditionalExpression: the mutant writes the same body again",
    "if (text.last === undefined || text.last.seconds !== seconds) {":
      "ConditionalExpression: the mutant writes the same body again",
    "function usualText(decision: Decision): RuleText | undefined {":
      "BlockStatement: without a prepared text, the same body is written for each refusal",
    'const isUsual = decision.refusal === "quota" && decision.checks.length === 1':
      "ConditionalExpression,StringLiteral: without a prepared text, the same body is written for each refusal",
  },
  "core/src/http/rejection/own-body.ts": {
    "} catch {": "BlockStatement: without a return statement, the result is undefined too",
  },
  "core/src/http/rejection/problem.ts": {
    "return { title: problem.title, status, json: problem.json.replace(/\\d+$/, String(status)) }":
      "Regex: no problem contains a digit in its type or title",
  },
  "core/src/http/rejection/retry.ts": {
    'return rejectionMessage === "exhausted-daily-limit"':
      "ConditionalExpression: the mutant writes the same body again for each refusal",
  },
  "core/src/http/respond.ts": {
    "return guard.asksApp ? askApp(outcome, guard, exchange) : refuse(rejection, outcome, guard, exchange)":
      "ConditionalExpression: the guard would return the same rejection",
    "isTaken(): boolean {": "BlockStatement: undefined is falsy, like false",
  },
  "core/src/limiter/callbacks/callback-results.ts": {
    "this.later = { results, pending: [], misses: 0 }":
      "ArrayDeclaration: waiting for a string ends immediately, and the promise is added to the array in any case",
  },
  "core/src/limiter/callbacks/callback.ts": {
    'const isObject = typeof result === "object" || typeof result === "function"':
      "ConditionalExpression: no string, number or boolean has a method `then`, so this check is only faster",
    'const units = typeof result === "number" && result > MAX ? MAX : result':
      "EqualityOperator: the result for the maximum itself is the maximum in both cases",
  },
  "core/src/limiter/checking/admission.ts": {
    "if (counts === false) return undefined":
      "ConditionalExpression: prepareAfter also returns undefined for such a request, as a promise",
    'if (startedMs === undefined && !this.events.has("decided")) return decision':
      "ConditionalExpression: without a start time and listeners, announce emits no event either, so the mutant is only slower",
  },
  "core/src/limiter/control/client-options.ts": {
    "if (forMs !== undefined && forMs <= LONGEST_BLOCK_MS) return { forMs, rules: given.rules }":
      "ConditionalExpression: no comparison with undefined is true, so the condition is false anyway",
  },
  "core/src/limiter/checking/hold.ts": {
    '"clock.wait",': "StringLiteral: any name works that no other callback uses",
    "return renewed?.ruleChecks":
      "OptionalChaining: an error in this function is caught and leads to the same result as undefined",
  },
  "core/src/limiter/events/client-reports.ts": {
    "if (counter === undefined || remaining === undefined || !showsUse(check)) return":
      "ConditionalExpression,LogicalOperator: showsUse is false for every check without a counter or without remaining units",
    "if (isNeeded === this.#isListening) return":
      "ConditionalExpression: a second listener reports nothing, because each threshold is reported once in a window, and off() removes both listeners",
  },
  "core/src/limiter/events/outage-log.ts": {
    "#beganMs: readonly number[] = []":
      "ArrayDeclaration: a string is not later than any time, so it is removed before the array is counted",
    'return (text.split(/\\.(?: |$)/, 1)[0] as string).replace(/^The store failed: /, "")':
      "Regex,StringLiteral: only errors of storeErrorOf contain these words, at their beginning; a known cause is also recognized when it is added",
    "if (medianMs > storeTimeoutMs) {":
      "EqualityOperator: a median latency is hardly ever exactly the timeout",
  },
  "core/src/limiter/events/store-reports.ts": {
    "this.#unsubscribe = store.subscribe?.((event) => this.#report(event))":
      "OptionalChaining: every store of a limiter implements this method, because foreignStore adds it",
    'if (events.has("store-error")) events.emit("store-error", storeErrorOf(error))':
      "ConditionalExpression: without a listener, the mutant only creates an error unnecessarily",
  },
  "core/src/limiter/create-limiter.ts": {
    'process.send !== undefined && (process.getBuiltinModule("node:cluster") as unknown as Cluster).isWorker':
      "ConditionalExpression: isWorker is false in other processes, so the mutant only loads the module unnecessarily",
  },
  "core/src/limiter/options/parse-options.ts": {
    'if ("value" in made) ignoreRejection(made.value)':
      "ConditionalExpression: without a value, the mutant passes undefined, which is ignored",
  },
  "core/src/limiter/request-limiter.ts": {
    "if (HoldingDecision.holds(decision)) {":
      "ConditionalExpression: without permits, a release is a no-op that ends immediately",
    "const renewed = prepared.renewed()?.ruleChecks":
      "OptionalChaining: an error in this function is caught and leads to the same result as undefined",
    "return rules === undefined ? undefined : { steps: NO_STEPS, isLeft: undefined }":
      "ObjectLiteral: undefined steps include no step either",
  },
  "core/src/limiter/rule-set/compiled-rule.ts": {
    "const matches = rule.match === undefined ? undefined : compileMatch(rule.match, listReaderOf, hasMethod)":
      "ConditionalExpression: a matcher that matches every request returns the same result, only more slowly",
    "if (watch.left > 0) watches.set(counter, watch)":
      "ConditionalExpression,EqualityOperator: a watch without fields behaves the same when it is created again",
    "if (isWatched && watch.left > 0) watchFields(partition, facts, results)":
      "ConditionalExpression,EqualityOperator: a watch that has ended keeps counting below 0, where it never warns",
    'const client = isText ? partition : ""':
      "StringLiteral: a request without the field is refused before any counter is read",
    "if (facts.onlyFields !== undefined && lacks(facts.onlyFields, needed)) return undefined":
      "ConditionalExpression: this is only a shortcut, because an absent value is not a set",
    'if (!countsPreflight && facts.method === "OPTIONS" && isPreflight(facts)) return undefined':
      "ConditionalExpression: this is only a shortcut, because isPreflight also checks the method",
  },
  "core/src/limiter/rule-set/elastic.ts": {
    'const fixedLimit = typeof limit === "number" && overrides === undefined ? limit : undefined':
      "ConditionalExpression,LogicalOperator: a function, like undefined, is below no number; with overrides, only huge costs make a difference",
    'throttle: { kind: "elastic", ceiling: highest, ...(queue !== undefined && { queue }) },':
      "ConditionalExpression: an undefined queue is treated like an absent one",
  },
  "core/src/limiter/rule-set/field-callback.ts": {
    'if (!warner.has("SLUICE_EXTRACTOR_FAILED", name)) {':
      "ConditionalExpression,StringLiteral: the mutant builds the message again, but the warner logs it only once",
  },
  "core/src/limiter/rule-set/field-watch.ts": {
    "this.left = fields.every((field) => UNWATCHED.has(field)) ? 0 : FIRST_REQUESTS":
      "ArrowFunction: the mutant also watches these fields, but warnOfMissingField ignores them",
  },
  "core/src/limiter/rule-set/limit.ts": {
    "const address = /[:#]/.test(partition) ? clientAddress(facts, request) : partition":
      "Regex: the partition of an IPv4 client is its address, so the mutant only reads the address again",
    "return address === undefined ? undefined : policyFor(address)":
      "ConditionalExpression: a request that has a partition by address also has an address",
  },
  "core/src/limiter/rule-set/rule-context.ts": {
    "blocks: { isOn: false },": "ObjectLiteral: undefined disables the watch, like false",
  },
  "core/src/limiter/rule-set/rule-counters.ts": {
    'const counter = fingerprint(JSON.stringify([service, "blocks"]))':
      "StringLiteral: any name works that no rule uses for its counter",
    'name: "",': "StringLiteral: no result contains the name of this counter",
    'align: "epoch",': "StringLiteral: the windows of a penalty are not aligned",
  },
  "core/src/limiter/rule-set/rule-doubts.ts": {
    'const path = pathDoubt(match?.path ?? "")':
      "StringLiteral: any string without a brace causes no warning",
  },
  "core/src/limiter/rule-set/rule-index.ts": {
    "const root: IndexNode = { groups: [], next: new Map() }":
      "ArrayDeclaration: a string has no step, so it is skipped like a group of another step",
    "addGroups(this.#byShape.get(routeShape(route)) ?? [], request, found)":
      "ArrayDeclaration: a string has no step, so it is skipped like a group of another step",
    "const next: IndexNode = node.next.get(segment) ?? { groups: [], next: new Map() }":
      "ArrayDeclaration: a string has no step, so it is skipped like a group of another step",
    "for (const entry of byField) if (best === undefined || entry[1].size > best[1].size) best = entry":
      "EqualityOperator: if two fields have the same number of values, an index by either field finds the rules",
    "if (node.next.size === 0) return":
      "ConditionalExpression: a search below a node without children finds no rules",
    "for (let i = 1; i < found.length; i++) {":
      "EqualityOperator,UpdateOperator: the mutant only sorts positions that are already sorted",
    "if ((found[i] as number) > (found[i - 1] as number)) continue":
      "ConditionalExpression: the mutant only sorts positions that are already sorted",
    "if (paths.length === 0) addGroups(this.#root.groups, request, found)":
      "ConditionalExpression: the mutant adds the same positions twice, and duplicates are removed",
  },
  "core/src/limiter/rule-set/rule-set.ts": {
    "const needsPath = rules.some(({ match }) => match?.path !== undefined)":
      "ConditionalExpression: the mutant only reads a path that no rule compares",
    "return routedUrl === url ? paths : [...paths, ...pathReadings(routedUrl)]":
      "ConditionalExpression: the mutant only adds the same readings again",
  },
  "core/src/limiter/rule-set/rules-in-force.ts": {
    "this.#claimOrThrow(limiter === undefined ? shared : [])":
      "ArrayDeclaration: a string contains no name that another limiter could need",
    "return new RulesInForce(this.#options, this.#listener, () => [], this, inline)":
      "ArrowFunction,ArrayDeclaration: a route is never asked for its routes, because only the limiter follows the rules",
    "this.#listener.follow(this, [])":
      "ArrayDeclaration: a string has no notify method, so no rules are followed",
  },
  "core/src/limiter/spare-capacity/event-loop-gauge.ts": {
    "const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })":
      "ObjectLiteral: the mutant samples at another interval, which only costs time",
    "stop() {": "BlockStatement: the histogram keeps sampling after its last use, which only costs time",
  },
  "core/src/limiter/waiting/attempt.ts": {
    "let mayEndSooner = false":
      "BooleanLiteral: if no refusal lasts for any time, the next request calls the store now",
    "if (counts === undefined) return retryAfterMs":
      "ConditionalExpression: a client that a quota refuses has been counted",
  },
  "core/src/limiter/waiting/heap.ts": {
    "const isRight = right !== undefined && this.#keyOf(right) < this.#keyOf(left)":
      "EqualityOperator: either of two equal keys may come first",
  },
  "core/src/limiter/waiting/lines.ts": {
    "hasUncounted: false,":
      "BooleanLiteral: an additional scan finds nothing, because new requests were counted when they arrived",
    "if (isReady(line) && line.waiting.first === first) return first":
      "ConditionalExpression: an earlier request in the same queue would have been returned before this one",
    "if (!line.hasUncounted || line.waiting.size + line.turns.length <= line.fewest) return crowded":
      "EqualityOperator: if the number of waiting requests is within the limit of every request, a scan finds nothing",
  },
  "core/src/limiter/waiting/ticket.ts": {
    'state: "asking",':
      "StringLiteral: the state is set again before it is read, when the request is decided or queued",
    "return options.currentChecks?.()":
      "OptionalChaining: a call of undefined throws, and this error is caught",
    "if (decision.delayMs === 0) return 0":
      "ConditionalExpression: the longest delay in a list without delays is 0 too, so this is only a shortcut",
    "} catch {": "BlockStatement: without a return statement, the result is undefined too",
  },
  "core/src/limiter/waiting/waiting-room.ts": {
    "if (this.#isServing) return":
      "ConditionalExpression: only a function of the app that calls the limiter while requests are served would notice",
    "this.#isServing = true":
      "BooleanLiteral: only a function of the app that calls the limiter while requests are served would notice",
    "if (allowed) this.#refund(ticket, decision)":
      "ConditionalExpression: the refund of a refusal is a no-op",
    "const mayEndSooner = line.untilMs === undefined ? asking > 0 : line.mayEndSooner":
      "ConditionalExpression,EqualityOperator: if nothing is pending, the next request is sent now and sets the timer again",
    "if (waiting !== undefined) this.#giveUp(waiting, error)":
      "ConditionalExpression: a line has a timer only while a request waits in it",
    "return one.policy.counter === other.policy.counter && one.partition === other.partition":
      "ConditionalExpression: a request has at most one check for the counters of each rule",
  },
  "core/src/request/facts-readers.ts": {
    "return remoteAddress === undefined":
      "ConditionalExpression: an address of undefined describes the same request",
  },
  "core/src/request/field.ts": {
    'const isAddress = name === "ip"':
      "ConditionalExpression,StringLiteral: an address is always a string that is not empty",
    'return ({ method }) => (method === "GET" ? method : methodText(method))':
      "ConditionalExpression,StringLiteral: the slow path returns the same method",
  },
  "core/src/request/forwarded.ts": {
    'const comma = name === "forwarded" ? commaOutsideQuotes(text, end) : commaBefore(text, end)':
      "ConditionalExpression: an element that contains a quote is not a valid address in a header without quotes",
  },
  "core/src/request/partition.ts": {
    'if (fields.length === 0) return () => ""':
      "ConditionalExpression: a list without values results in the same partition, only more slowly",
    "if (readers.length === 1) {":
      "ConditionalExpression,BlockStatement: a list with one value results in the same partition, only more slowly",
    'const isAddress = fields[0] === "ip"':
      "ConditionalExpression,StringLiteral: the conversion to text returns the same address, only more slowly",
  },
  "core/src/request/server-facts.ts": {
    "get keepsAddress(): object | undefined {":
      "BlockStatement: an address that is not stored is computed again, with the same result",
  },
  "core/src/rules/parsing/most-admitted.ts": {
    "return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)":
      "ConditionalExpression: undefined is below no number, so the comparison is false anyway",
  },
  "core/src/stores/bounded-table.ts": {
    "if (evicted !== undefined) this.delete(evicted)":
      "ConditionalExpression: delete() ignores an entry that is not in the table, and undefined is not",
    "ofCounter?.delete(partition)": "OptionalChaining: the counter of an entry in the table always has a map",
    "if (ofCounter?.size === 0) this.#byCounter.delete(policy.counter)":
      "ConditionalExpression,OptionalChaining: the counter of an entry always has a map, and an empty map only takes memory",
  },
  "core/src/stores/counters.ts": {
    "const pending = new Array<Located<Key>>(length)":
      "ArrayDeclaration: an array without a size grows to the same array, only slower",
    "const before = new Array<CounterState>(length)":
      "ArrayDeclaration: an array without a size grows to the same array, only slower",
    "const counted = new Array<Counted>(length)":
      "ArrayDeclaration: an array without a size grows to the same array, only slower",
    "if (algorithm.endsByRule === true) this.#table.keep(key, algorithm.emptyAtMs(state, policy))":
      "ConditionalExpression: the expiry of other entries does not change, so the search finds nothing",
    'constructor(table: CounterStates<Key>, keyOf: NameKey<Key>, spare: Key = keyOf("", "")) {':
      "StringLiteral: the initial value is overwritten before it is read",
    "const isOne = checks.length === 1":
      "ConditionalExpression: a list with one check is taken in the same way, only more slowly",
    "if (after !== state) this.#table.write(key, after, algorithm.emptyAtMs(after, policy), nowMs)":
      "ConditionalExpression: the mutant only writes an unchanged state again",
  },
  "core/src/stores/foreign-store.ts": {
    "const keepsAlive = withinMs === undefined || withinMs < LEAST_BACKGROUND_MS":
      "ConditionalExpression,LogicalOperator,EqualityOperator: the timer decides only whether a process ends that has nothing else to do",
    "return Object.defineProperty(store, GUARDED, { value: true })":
      "ObjectLiteral,BooleanLiteral: only the presence of the property matters",
  },
  "core/src/stores/memory/counter-table.ts": {
    "readonly #readKey: KeyHash = { low: NO_KEY, high: 0 }":
      "ObjectLiteral: no key has undefined as a word either",
    "if (++this.#writes % WRITES_PER_SWEEP === 0) this.#sweep(nowMs)":
      "UpdateOperator: counting down reaches a multiple equally often",
    "if (slot >= 0) segment.block(slot, releaseAtMs)":
      "ConditionalExpression: a typed array ignores a write at an index outside of it",
    "if (slot >= 0) segment.keep(slot, emptyAtMs)":
      "ConditionalExpression: a typed array ignores a write at an index outside of it",
    "return low === key.low && high === key.high ? this.#readSlot : segment.find(key)":
      "ConditionalExpression: the mutant finds the same slot again; mutants of the operators show that both words are compared",
  },
  "core/src/stores/memory/evictions.ts": {
    "#second = -1": "UnaryOperator: no clock returns the second 1 of the epoch",
    "get isEmpty(): boolean {": "BlockStatement: reporting no evictions only creates an array",
    "return this.#collected.length === 0":
      "ConditionalExpression: reporting no evictions only creates an array",
  },
  "core/src/stores/memory/key-hash.ts": {
    "return (counter, partition, into = { low: 0, high: 0 }) => {":
      "ObjectLiteral: both words are written before they are read, and the literal only sets the shape of the object",
    "if (counter !== lastCounter) {": "ConditionalExpression: the mutant only looks the start up again",
    "if (known !== undefined) return known":
      "ConditionalExpression: the mutant only computes the start again",
    "if (starts.size >= MAX_STARTS) starts.clear()":
      "ConditionalExpression,EqualityOperator: the bound limits only memory, which no test observes",
  },
  "core/src/stores/memory/memory-store.ts": {
    "if (!this.#evictions.isEmpty) this.#report(nowMs)":
      "ConditionalExpression: reporting no evictions only creates an array",
  },
  "core/src/stores/memory/segment.ts": {
    "if (this.count + 1 > this.capacity * MOST_LOAD) {":
      "EqualityOperator: the table only grows one key earlier or later",
    "if (emptyAtS < this.#nothingEmptyBeforeS) this.#nothingEmptyBeforeS = emptyAtS":
      "EqualityOperator: the comparison differs only for equal values, whose assignment has no effect",
    "if (emptyAtS < this.#roundEmptyAtS) this.#roundEmptyAtS = emptyAtS":
      "EqualityOperator: the comparison differs only for equal values, whose assignment has no effect",
    "if (nowS < this.#nothingEmptyBeforeS) return 0":
      "ConditionalExpression: the mutant searches but finds no expired entry",
    "if (slot === 0) this.#beginRound()":
      "ConditionalExpression: the mutant would begin rounds again and again, and usually find nothing",
    "if (this.isUsed(slot)) this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.emptyAtS(slot))":
      "ConditionalExpression: a free slot contains 0, so the mutant only starts another search that finds nothing",
    "while (growth >= 1 && this.count < capacityAt(growth - 2) * MOST_LOAD) growth--":
      "EqualityOperator: the table only shrinks one key earlier or later",
    "if (looked >= CANDIDATES && this.#refusedUntilS(victim, nowS) === 0) break":
      "EqualityOperator: seventeen candidates are as good as sixteen",
    "if (looked === MANY_CANDIDATES) victim = this.#newestOr(victim, nowS)":
      "ConditionalExpression: the mutant would only examine the whole segment",
    "if (refusedUntilS !== victimRefusedUntilS) return refusedUntilS < victimRefusedUntilS":
      "EqualityOperator: the values are never equal at this point",
    "readonly #newest: KeyHash = { low: 0, high: 0 }":
      "ObjectLiteral: both words are written before they are read",
    "if (++this.#newKeysOfMark * SLOTS_PER_MARK > this.capacity) this.#beginMark()":
      "EqualityOperator: the mark advances one key earlier",
    "const slot = this.#hand + 1 >= this.capacity ? 0 : this.#hand + 1":
      "EqualityOperator: the slot after the end is never used",
    "if (growth < this.#growth) this.#resizeTo(growth)":
      "ConditionalExpression,EqualityOperator: moving all keys to a table of the same size only takes time",
    "for (let looked = 1; looked < this.count; looked++) {":
      "EqualityOperator: the first key is only examined once more",
    "if (emptyAtS <= nowS || victimEmptyAtS <= nowS) return emptyAtS < victimEmptyAtS":
      "EqualityOperator: either of two keys with the same expiry may be evicted",
    "return age === victimAge ? emptyAtS < victimEmptyAtS : age > victimAge":
      "EqualityOperator: the ages differ wherever they are compared",
    "#beginRound(): void {":
      "BlockStatement: the mutant would begin rounds again and again, and usually find nothing",
  },
  "core/src/stores/memory/slots.ts": {
    "for (let slot = this.#home(low); ; slot = slot + 1 === end ? 0 : slot + 1) {":
      "ArithmeticOperator: positions after the end contain no entry either",
    "if ((slotHigh & HASH_BITS) === high && halves[at + HASH_LOW] === low) return slot":
      "ArithmeticOperator: the offset is 0, so adding or subtracting it makes no difference",
    "this.#halves[slot * HALVES + HASH_LOW] = key.low":
      "ArithmeticOperator: the offset is 0, so adding or subtracting it makes no difference",
    "if (this.#parts !== undefined) this.#parts[hole] = undefined":
      "ConditionalExpression: the next entry in the slot overwrites the parts, so they only use memory until then",
    "const low = from[at + HASH_LOW] as number":
      "ArithmeticOperator: the offset is 0, so adding or subtracting it makes no difference",
    "for (let slot = 0; slot < slots; slot++) {":
      "EqualityOperator: the slot after the end reads as a free slot",
    "if (from[at + HASH_HIGH] === 0) continue":
      "ConditionalExpression: copying a free slot results in a free slot",
    "if (this.#parts !== undefined) this.#parts[free] = fromParts?.[slot]":
      "OptionalChaining: if the new table stores parts, the old table stored parts too",
  },
  "core/src/stores/store-listeners.ts": {
    "this.#events = new SafeEvents<{ event: [Event] }>({ event: true }, (error) =>":
      "BooleanLiteral: only the name of the member matters",
  },
  "core/src/ground/quick-strings.ts": {
    "for (let i = 0; i < ENOUGH_CALLS; i++) methodOf(heir)":
      "EqualityOperator: the method is only looked up one more time",
  },
  "redis/src/batching/batch-policy.ts": {
    "const isBusy = this.#rest <= MOST_REST_OF_BUSY":
      "EqualityOperator: an average is hardly ever exactly this value",
    "if (this.#rest < LEAST_REST_OF_WAITING) return":
      "EqualityOperator: an average is hardly ever exactly this value",
  },
  "redis/src/batching/batch-sender.ts": {
    "if (this.#canSend()) outsideRequests(this.#sendAll)":
      "ConditionalExpression: this is only a shortcut, because the sender checks the same condition itself",
  },
  "redis/src/batching/queue.ts": {
    "if (arrivals.length === 0) return firstMs":
      "ConditionalExpression: the mutant only reads the clock for an empty queue",
    "this.#waiting = this.#waiting.length === 0 ? arrivals : this.#waiting.concat(arrivals)":
      "ConditionalExpression: concatenating an empty queue results in the same requests, in another array",
  },
  "redis/src/batching/watchdog.ts": {
    "if (deadlineMs >= this.#dueMs) return": "EqualityOperator: the mutant only sets the same deadline again",
  },
  "redis/src/clients/commands-of.ts": {
    'const [, scheme = "redis"] = /^([a-z][\\w+.-]*):\\/\\//i.exec(String(client)) ?? []':
      "ArrayDeclaration: only the second element is read, and the mutant's array has only one",
  },
  "redis/src/clients/ioredis-cluster.ts": {
    'if (typeof asking !== "function" || Object.hasOwn(node, "asking")) return':
      "ConditionalExpression: all ioredis clients implement this method",
  },
  "redis/src/clients/key-slot.ts": {
    "if (code > 0x7f) return slotOfBytes(Buffer.from(hashed))":
      "ConditionalExpression,EqualityOperator: this is only a faster way to the same bytes",
  },
  "redis/src/deny-cache.ts": {
    "for (let i = 0; i < checks.length; i++) {":
      "EqualityOperator: the result after the last check is undefined, so the loop continues",
    "if (checks.some(countsRefusals)) {":
      "ConditionalExpression: if no check counts refusals, the calculation finds no change and is only slower",
    "if (policy === known || algorithmOf(policy).endsByRule !== true) return true":
      "ConditionalExpression: the comparison of a policy with itself returns true too, only more slowly",
  },
  "redis/src/key.ts": {
    "if (partition !== lastPartition) {": "ConditionalExpression: the mutant only computes the key again",
  },
  "redis/src/node/breaker.ts": {
    "if (this.#isOpen) this.#close()":
      "ConditionalExpression: a closed breaker has no timer and no probe to stop",
  },
  "redis/src/node/node.ts": {
    'if (!this.knowsTime && !(await this.learnTime(patience.withinMs))) throw this.silence("not-applied")':
      "ConditionalExpression: after a timeout, the deadline has usually passed, so sending throws too",
    "if (this.breaker.isOpen) this.#explain(failure)":
      "ConditionalExpression: the reason is read only while the breaker is open, and the failure that opens the breaker sets it",
    'if (performance.now() > deadlineMs) throw this.silence("not-applied")':
      "EqualityOperator: exactly at the deadline, both results are correct",
  },
  "redis/src/redis-store.ts": {
    "if (!this.#denied.isEmpty) {":
      "ConditionalExpression,EqualityOperator: an empty cache returns no refusal, only more slowly",
    "if (granted && this.#denied.isEmpty) return":
      "ConditionalExpression,EqualityOperator: after a granted request, only known counters are updated",
    "const parts: Promise<void>[] = []": "ArrayDeclaration: Promise.all ignores values that are not promises",
    "if (refunds.length === 0) return":
      "ConditionalExpression: an empty list of refunds results in no call either",
  },
  "redis/src/refund-batcher.ts": {
    "if (this.#queue.length === 0) soon(this.#pump)":
      "ConditionalExpression: a second run of the pump finds nothing left to send",
    "if (late.length === 0) return batch":
      "ConditionalExpression: the filter below returns all requests too, but the mutant creates an error unnecessarily",
  },
  "redis/src/scripts.ts": {
    "if (at === -1) throw new Error(`formulas.lua has no formula ${name}.`)":
      "StringLiteral: only a developer who misspells a formula sees this error, when the file is loaded",
  },
  "redis/src/scripts/packed-call.ts": {
    "if (text === undefined) {": "ConditionalExpression: the mutant only computes the digits again",
  },
  "redis/src/scripts/script-input.ts": {
    "this.#keys ??= this.checks.map(this.#keyOf)":
      "AssignmentOperator: the mutant only computes the keys again",
    "for (let i = 0; i < this.#policies.length; i++) {":
      "EqualityOperator: the position after the last policy contains no policy and no kind",
    "one === other ||": "ConditionalExpression: this is only a shortcut for the usual case",
  },
  "redis/src/scripts/script-reply.ts": {
    'const wide = typeof value === "string" ? WIDE.exec(value) : null':
      "ConditionalExpression: the pattern never matches a number",
  },
  "redis/src/scripts/take-call.ts": {
    "if (asked.checks.length !== 1 || this.#entries.length === 0) return undefined":
      "ConditionalExpression,LogicalOperator,EqualityOperator: the mutant only searches for an entry that does not exist",
    "if (isSame(asked, latest.asked)) return latest":
      "ConditionalExpression: this is only a shortcut for the usual case",
    "if (this.#last === undefined) {":
      "ConditionalExpression: the mutant only collects the same entries again",
    "if (list.length === end) return undefined":
      "ConditionalExpression: an empty map leads to the same results",
    "if (later === 0) return state": "ConditionalExpression: removing zero units returns the same state",
  },
  "redis/src/take-in-turn.ts": {
    "const times: number[] = []": "ArrayDeclaration: a time without a counter has no effect on the result",
  },
  "redis/src/topology.ts": {
    "if (!this.#commands.isCluster) return true":
      "ConditionalExpression,BooleanLiteral: the path for several slots returns the same result for one slot, only later",
  },
  "express/src/layers.ts": {
    'function hasParameters({ rawPath = "/", params = {}, keys = [] }: Layer): boolean {':
      "StringLiteral: any string without a pattern works",
  },
  "express/src/route.ts": {
    'if (baseUrl !== "" && isBelowPattern(route, app)) return undefined':
      "ConditionalExpression,StringLiteral: no path is below the pattern of an empty path, whether it is looked up or not",
    "if (known === undefined) {": "ConditionalExpression: the mutant only searches for the same route again",
  },
  "fastify/src/registration.ts": {
    'if (anyOwn || name !== "onRequest" || !decidesAtOnce) decideAt(name, request, reply, done)':
      "ConditionalExpression,EqualityOperator,StringLiteral: both paths lead to the same decision",
  },
  "koa/src/error-headers.ts": {
    "if (error === null || error === undefined) return":
      "ConditionalExpression,LogicalOperator: without an error, no headers are removed",
  },
}
