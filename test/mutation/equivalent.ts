/**
 * Mutants that behave like the source, so that no test can notice them. Keys are the path below packages/ and the text
 * of the line. Values are the mutators and the reason. The usual reason is speed: a shortcut returns the result of the
 * long way.
 */
export const EQUIVALENT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "core/src/algorithms/exact-counts.ts": {
    "if (count === 0) return 0":
      "ConditionalExpression: a share of nothing is nothing, but most windows have none before them",
    "if (product <= Number.MAX_SAFE_INTEGER) return (offset + 1) * unitMs":
      "ConditionalExpression,EqualityOperator: counting up yields the same, only slower",
    "if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole)":
      "ConditionalExpression,EqualityOperator: in two parts it is the same, only slower",
  },
  "core/src/algorithms/most-in-use.ts": {
    "if (units <= ceilingOf(policy)) return false":
      "ConditionalExpression,EqualityOperator: the most in use is at least the ceiling",
  },
  "core/src/algorithms/packed-counts.ts": {
    'if (packed === "") return 0':
      "ConditionalExpression,StringLiteral: numbers of no digits yield the same, by way of NaN",
    "while (length > 0 && numbers[length - 1] === 0) length--":
      "ConditionalExpression,EqualityOperator: there is nothing at -1, but to look there is slow",
    'return Buffer.from(text, "latin1").toString("latin1")':
      "StringLiteral: of these characters every encoding is the same, and this one is the quickest",
  },
  "core/src/algorithms/packed-log.ts": {
    "width === unitsWidth ? entries : widened(entries, timeWidth, unitsWidth, width)":
      "ConditionalExpression: to widen by no digit yields the same, only slower",
  },
  "core/src/algorithms/sliding-log.ts": {
    "if (state === undefined || state.current === 0 || !state.parts) return empty(nowMs)":
      "ConditionalExpression: of no units there are no entries, unless sums beyond 2^53 were rounded",
    "if (cost > ceiling) return Number.POSITIVE_INFINITY":
      "ConditionalExpression: no entry of all makes room for it, which is found out slower",
    "for (let place = FIRST; place < log.end; place += entryWidth(log)) {":
      "EqualityOperator: at the end there are no units",
    "while (place < log.end) {": "EqualityOperator: at the end there are no units",
    "if (there > rest) break":
      "EqualityOperator: an entry with exactly that many units is empty afterwards in both cases",
  },
  "core/src/algorithms/sliding-window.ts": {
    "if (state.startMs > startMs) {": "EqualityOperator: the same window has been returned",
    "if (previous === 0) return true":
      "ConditionalExpression: a share of nothing is nothing, but most windows have none before them",
    "if (previous === 0) return current":
      "ConditionalExpression: a share of nothing is nothing, but most windows have none before them",
  },
  "core/src/algorithms/sub-windows.ts": {
    "if (by < 0) return broughtBack(previous + current, parts, startMs, -by)":
      "EqualityOperator: the same sub-window has been returned",
    "for (let index = kept; index < countOf(parts); index++) left -= numberAt(parts, index)":
      "EqualityOperator: beyond the last there is 0",
    "for (let index = 0; index < countOf(parts); index++) {": "EqualityOperator: beyond the last there is 0",
  },
  "core/src/decision/decision-record.ts": {
    "if (checks.length > 1 && binding.allowed) {":
      "ConditionalExpression,EqualityOperator: of one it is the same",
  },
  "core/src/decision/explain-answer.ts": {
    "if (refusal !== undefined || penalty !== undefined) return withPenalties(ruleChecks.filter(isCounted))":
      "ConditionalExpression,EqualityOperator: the list that is made contains the same requests",
    "if (storeChecks !== ruleChecks)": "ConditionalExpression: the long way explains the same",
    "ruleChecks.length === 1 && counted !== undefined":
      "ConditionalExpression: a list of one is explained the same",
  },
  "core/src/decision/explain.ts": {
    "const hard = policy.extra === undefined ? policy : hardOf(policy)":
      "ConditionalExpression: a policy without extra members is made without need",
  },
  "core/src/decision/local-fallback.ts": {
    "if (this.#instances === 1) return ruleCheck":
      "ConditionalExpression: the only one has all of it, and is put together again",
  },
  "core/src/decision/corrections.ts": {
    "return refunds.filter(({ units }) => units > 0)": "EqualityOperator: of no units there is no refund",
  },
  "core/src/http/guard/mount-check.ts": {
    "if (newest !== undefined) warnSameNames(warner, mount)":
      "ConditionalExpression: beside no other mount there is nothing to warn of",
  },
  "core/src/http/guard/mount-outcome.ts": {
    "if (this.lines === undefined) {": "ConditionalExpression: written again, they are the same",
    "return rejection === undefined":
      "ConditionalExpression: callers read a rejection that is undefined like one that is absent",
  },
  "core/src/http/guard/route-rule.ts": {
    'const { path = "", besides = [] } = route': "ArrayDeclaration: no rule has a member of that name",
    "const { label, counter = label, besides = [], isAlone = false } = route":
      "ArrayDeclaration: no rule has a member of that name",
  },
  "core/src/http/guard/writers.ts": {
    'return { name, limit: typeof limit === "number" ? limit : undefined, windowMs, shadow }':
      "ConditionalExpression,StringLiteral: an unknown limit is written from each decision, the same",
  },
  "core/src/http/headers/header-values.ts": {
    "while (rest >= 1000) {":
      "ConditionalExpression,EqualityOperator: what is not put together is written the same",
  },
  "core/src/http/headers/members.ts": {
    "if (checks.length === 1) {":
      "ConditionalExpression,EqualityOperator,BlockStatement: a list of one is written the same",
    "if (first?.line !== undefined && check.limit === first.limit && check.policy === first.name) {":
      "ConditionalExpression,BlockStatement: the long way writes the same",
    "return check.allowed": "ConditionalExpression: written again, they are the same",
    "return check.limit === text.limit":
      "ConditionalExpression: the line that was written in advance is the same",
    "if (lastRefusal === undefined || lastRefusal.seconds !== seconds || lastRefusal.cost !== cost) {":
      "ConditionalExpression: written again, they are the same",
    "if (seconds !== lastSeconds) {": "ConditionalExpression: it is written again",
    'return member.charCodeAt(0) === QUOTE ? member : ""':
      "ConditionalExpression,StringLiteral: each begins with one",
  },
  "core/src/http/headers/single-values.ts": {
    "const limit = check.limit === text.ownLimit ? text.ownLimitText : String(fieldInteger(check.limit))":
      "ConditionalExpression: the value that is made for each request is the same",
    'ownLimitText: limit === undefined ? "" : String(fieldInteger(limit)),':
      "ConditionalExpression,StringLiteral: the text of no limit is never used",
  },
  "core/src/http/rejection.ts": {
    "if (text === undefined || text.tellsInstant) return jsonRejection(decision, seconds, nowMs)":
      "ConditionalExpression: written again, it is the same",
    "if (text.last === undefined || text.last.seconds !== seconds) {":
      "ConditionalExpression: written again, it is the same",
    "function usualText(decision: Decision): RuleText | undefined {":
      "BlockStatement: an unusual value is written again, and is the same",
    'const isUsual = decision.refusal === "quota" && decision.checks.length === 1':
      "ConditionalExpression,StringLiteral: an unusual value is written again, and is the same",
  },
  "core/src/http/rejection/own-body.ts": {
    "} catch {": "BlockStatement: without a return statement, the result is undefined too",
  },
  "core/src/http/rejection/problem.ts": {
    "return { title: problem.title, status, json: problem.json.replace(/\\d+$/, String(status)) }":
      "Regex: no problem has a digit in its type or title",
  },
  "core/src/http/rejection/retry.ts": {
    'return rejectionMessage === "exhausted-daily-limit"':
      "ConditionalExpression: a body that is written again for each refusal is the same",
  },
  "core/src/http/respond.ts": {
    "if (guard.needsStatus) reportWhenSent(guard, exchange)":
      "ConditionalExpression: a limiter without refundWhen gives nothing back",
    "return guard.asksApp ? askApp(outcome, guard, exchange) : refuse(rejection, outcome, guard, exchange)":
      "ConditionalExpression: the guard would return the same rejection",
  },
  "core/src/limiter/checking/admission.ts": {
    "if (counts === false) return undefined":
      "ConditionalExpression: prepareAfter returns undefined for such a request too, in a promise",
    "return startedMs === undefined ? decision : this.#told(decision, prepared)":
      "ConditionalExpression: without a start time, tell emits no event either, so this is only slower",
  },
  "core/src/limiter/control/block-options.ts": {
    "if (forMs !== undefined && forMs <= LONGEST_BLOCK_MS) return { forMs, rules: given.rules }":
      "ConditionalExpression: undefined is below no number, so the comparison is false anyway",
    "if (options === undefined) return NONE": "ConditionalExpression: what follows returns the same",
  },
  "core/src/limiter/checking/hold.ts": {
    '"clock.wait",': "StringLiteral: any name that no other callback has",
  },
  "core/src/limiter/events/near-limit.ts": {
    "if (counter === undefined || remaining === undefined || !showsUse(check)) return":
      "LogicalOperator: showsUse is false for every check without a counter or without remaining units",
  },
  "core/src/limiter/events/outage-log.ts": {
    "#beganMs: readonly number[] = []":
      "ArrayDeclaration: a string is no later than any time, so it is removed before the array is counted",
    'return (text.split(/\\.(?: |$)/, 1)[0] as string).replace(/^The store failed: /, "")':
      "Regex: only errors of storeErrorOf contain these words, and they begin with them",
  },
  "core/src/limiter/events/store-reports.ts": {
    "this.#unsubscribe = store.subscribe?.((event) => this.#report(event))":
      "OptionalChaining: every store of a limiter has this method, because foreignStore adds it",
  },
  "core/src/limiter/create-limiter.ts": {
    'process.send !== undefined && (process.getBuiltinModule("node:cluster") as unknown as Cluster).isWorker':
      "ConditionalExpression: isWorker is false in other processes, which only load the module without need",
  },
  "core/src/limiter/request-limiter.ts": {
    "const renewed = prepared.renewed()?.ruleChecks":
      "OptionalChaining: an error in this function is caught, and has the same result as undefined",
  },
  "core/src/limiter/rule-set/compiled-rule.ts": {
    "const matches = rule.match === undefined ? undefined : compileMatch(rule.match, listReaderOf, hasMethod)":
      "ConditionalExpression: what matches everything yields the same, only slower",
    "if (watch.left > 0) watches.set(counter, watch)":
      "ConditionalExpression,EqualityOperator: a watch with nothing to watch is the same when it is created again",
    "if (isWatched && watch.left > 0) watchFields(partition, facts, results)":
      "ConditionalExpression,EqualityOperator: a watch that has ended counts on below 0, where it never warns",
    'partition: isText ? partition : "",':
      "StringLiteral: a request without the field is refused before any counter is read",
    "if (facts.onlyFields !== undefined && lacks(facts.onlyFields, needed)) return undefined":
      "ConditionalExpression: a shortcut, as what is absent is no set",
    'if (!countsPreflight && facts.method === "OPTIONS" && isPreflight(facts)) return undefined':
      "ConditionalExpression: a shortcut, as isPreflight looks at the method too",
  },
  "core/src/limiter/rule-set/elastic.ts": {
    'const fixedLimit = typeof limit === "number" && overrides === undefined ? limit : undefined':
      "ConditionalExpression: a function is below no number, as undefined is; beside overrides, only huge costs differ",
  },
  "core/src/limiter/rule-set/field-watch.ts": {
    "this.left = fields.every((field) => UNWATCHED.has(field)) ? 0 : FIRST_REQUESTS":
      "ArrowFunction: these fields are then watched too, but warnOfMissingField leaves them out",
  },
  "core/src/limiter/rule-set/rule-context.ts": {
    "blocks: { isOn: false },": "ObjectLiteral: undefined turns the watch off, as false does",
  },
  "core/src/limiter/rule-set/rule-doubts.ts": {
    'const path = pathDoubt(match?.path ?? "")': "StringLiteral: any text without a brace causes no warning",
  },
  "core/src/limiter/rule-set/rule-index.ts": {
    "const root: IndexNode = { groups: [], next: new Map() }":
      "ArrayDeclaration: a string has no step, so it is skipped as a group of another step",
    "addGroups(this.#byShape.get(routeShape(route)) ?? [], request, found)":
      "ArrayDeclaration: a string has no step, so it is skipped as a group of another step",
    "const next: IndexNode = node.next.get(segment) ?? { groups: [], next: new Map() }":
      "ArrayDeclaration: a string has no step, so it is skipped as a group of another step",
    "for (const entry of byField) if (best === undefined || entry[1].size > best[1].size) best = entry":
      "EqualityOperator: if two fields have equally many values, an index by either finds the rules",
    "if (node.next.size === 0) return":
      "ConditionalExpression: a node without children finds nothing below it",
    "for (let i = 1; i < found.length; i++) {":
      "EqualityOperator,UpdateOperator: positions that are in order are sorted without need",
    "if ((found[i] as number) > (found[i - 1] as number)) continue":
      "ConditionalExpression: positions that are in order are sorted without need",
  },
  "core/src/limiter/rule-set/rule-set.ts": {
    "const needsPath = rules.some(({ match }) => match?.path !== undefined)":
      "ConditionalExpression: a path that no rule compares is read without need",
    "return routedUrl === url ? paths : [...paths, ...pathReadings(routedUrl)]":
      "ConditionalExpression: the same readings once more",
  },
  "core/src/limiter/rule-set/rules-in-force.ts": {
    "this.#claimOrThrow(limiter === undefined ? shared : [])":
      "ArrayDeclaration: a string has no name that another limiter could need",
    "return new RulesInForce(this.#options, this.#listener, () => [], this, inline)":
      "ArrowFunction,ArrayDeclaration: a route is never asked for its routes, because only the limiter follows the rules",
    "this.#listener.follow(this, [])": "ArrayDeclaration: a string has no notify, so nothing is followed",
  },
  "core/src/limiter/spare-capacity/event-loop-gauge.ts": {
    "const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })":
      "ObjectLiteral: looked at twice as often, which only costs",
    "stop() {": "BlockStatement: it goes on for nobody, which only costs",
  },
  "core/src/limiter/waiting/attempt.ts": {
    "if (counts === undefined) return retryAfterMs":
      "ConditionalExpression: a client that a quota refuses has been counted",
  },
  "core/src/limiter/waiting/heap.ts": {
    "const isRight = right !== undefined && this.#keyOf(right) < this.#keyOf(left)":
      "EqualityOperator: of two equal keys either may be above the other",
  },
  "core/src/limiter/waiting/lines.ts": {
    "hasUncounted: false,":
      "BooleanLiteral: a scan more finds nothing, because new requests were counted when they arrived",
    "if (isReady(line) && line.waiting.first === first) return first":
      "ConditionalExpression: an earlier request in the same line would have been returned before this one",
    "if (!line.hasUncounted || line.waiting.size + line.turns.length <= line.fewest) return crowded":
      "EqualityOperator: if no more wait than every request allows, a scan finds nothing",
  },
  "core/src/limiter/waiting/ticket.ts": {
    'state: "asking",':
      "StringLiteral: the state is set again before it is read, when the request asks or stands in line",
    "return options.currentChecks?.()": "OptionalChaining: to call what is absent throws, and that is caught",
    "if (decision.delayMs === 0) return 0":
      "ConditionalExpression: the longest of no delays is 0 too, but most have none",
  },
  "core/src/limiter/waiting/waiting-room.ts": {
    "if (this.#isServing) return":
      "ConditionalExpression: only a function of the app that calls the limiter while requests are served would notice",
    "this.#isServing = true":
      "BooleanLiteral: only a function of the app that calls the limiter while requests are served would notice",
    "if (allowed) this.#refund(ticket, decision)":
      "ConditionalExpression: the refund of a refusal is a no-op",
    "const atMs = untilMs ?? (asking > 0 && impatient.first ? impatient.first.deadlineMs + 1 : undefined)":
      "ConditionalExpression,EqualityOperator: if nothing is pending, the next request asks right now, and the timer is set again",
  },
  "core/src/request/facts-readers.ts": {
    "return remoteAddress === undefined":
      "ConditionalExpression: with the address that it has not got, it is the same request",
  },
  "core/src/request/field.ts": {
    'const isAddress = name === "ip"':
      "ConditionalExpression,StringLiteral: an address is a string that is not empty",
    'return ({ method }) => (method === "GET" ? method : methodText(method))':
      "ConditionalExpression,StringLiteral: the long way yields the same",
  },
  "core/src/request/forwarded.ts": {
    'const comma = name === "forwarded" ? commaOutsideQuotes(text, end) : commaBefore(text, end)':
      "ConditionalExpression: an element with a quote is no address where there are no quotes",
  },
  "core/src/request/partition.ts": {
    'if (fields.length === 0) return () => ""':
      "ConditionalExpression: a list of no values yields the same, only slower",
    "if (readers.length === 1) {":
      "ConditionalExpression,BlockStatement: a list of one value yields the same, only slower",
    'const isAddress = fields[0] === "ip"':
      "ConditionalExpression,StringLiteral: its text is the same, only slower",
  },
  "core/src/request/server-facts.ts": {
    "get keepsAddress(): object | undefined {":
      "BlockStatement: an address that is not kept is computed again, with the same result",
  },
  "core/src/rules/parsing/most-admitted.ts": {
    "return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)":
      "ConditionalExpression: undefined is below no number",
  },
  "core/src/stores/counters.ts": {
    "if (algorithm.endsByRule === true) this.#table.keep(key, algorithm.emptyAtMs(state, policy))":
      "ConditionalExpression: other entries keep their ends, so the search finds nothing",
    'this.#spare = keyOf("", "")': "StringLiteral: it is written over before it is read",
    "const isOne = checks.length === 1":
      "ConditionalExpression: all of one check are taken as one is, only slower",
    "if (after !== state) this.#table.write(key, after, algorithm.emptyAtMs(after, policy), nowMs)":
      "ConditionalExpression: what has not changed, written once more",
  },
  "core/src/stores/foreign-store.ts": {
    "return Object.defineProperty(store, GUARDED, { value: true })":
      "ObjectLiteral,BooleanLiteral: only the presence of the property matters",
  },
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
  "core/src/stores/memory/evictions.ts": {
    "#second = -1": "UnaryOperator: no clock shows the second 1 of the epoch",
    "get isEmpty(): boolean {": "BlockStatement: to report nothing only creates an array",
    "return this.#collected.length === 0": "ConditionalExpression: to report nothing only creates an array",
  },
  "core/src/stores/memory/key-hash.ts": {
    "return (counter, partition, into = { low: 0, high: 0 }) => {":
      "ObjectLiteral: both words are written before they are read, and it is of its shape from the start",
    "if (counter !== lastCounter) {": "ConditionalExpression: it is looked up again",
    "if (known !== undefined) return known": "ConditionalExpression: it is computed again",
    "if (starts.size >= MAX_STARTS) starts.clear()":
      "ConditionalExpression,EqualityOperator: it is a bound of memory that nobody sees",
  },
  "core/src/stores/memory/memory-store.ts": {
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
    "readonly #newest: KeyHash = { low: 0, high: 0 }":
      "ObjectLiteral: both words are written before they are read",
    "if (++this.#newKeysOfMark * SLOTS_PER_MARK > this.capacity) this.#beginMark()":
      "EqualityOperator: the mark advances one key sooner",
    "const slot = this.#hand + 1 >= this.capacity ? 0 : this.#hand + 1":
      "EqualityOperator: the slot beyond the end is never used",
    "if (growth < this.#growth) this.#resizeTo(growth)":
      "ConditionalExpression,EqualityOperator: moving all keys to a table of the same size only takes time",
    "for (let looked = 1; looked < this.count; looked++) {":
      "EqualityOperator: the first key is examined once more",
    "if (emptyAtS <= nowS || victimEmptyAtS <= nowS) return emptyAtS < victimEmptyAtS":
      "EqualityOperator: either of two keys with the same expiry may go",
    "return age === victimAge ? emptyAtS < victimEmptyAtS : age > victimAge":
      "EqualityOperator: the ages differ where they are compared",
    "#beginRound(): void {": "BlockStatement: it would look for ever, and mostly find nothing",
  },
  "core/src/stores/memory/slots.ts": {
    "for (let slot = this.#home(low); ; slot = slot + 1 === end ? 0 : slot + 1) {":
      "ArithmeticOperator: beyond the end there is nothing either",
    "if ((slotHigh & HASH_BITS) === high && halves[at + HASH_LOW] === low) return slot":
      "ArithmeticOperator: it is the first",
    "this.#halves[slot * HALVES + HASH_LOW] = key.low": "ArithmeticOperator: it is the first",
    "if (this.#parts !== undefined) this.#parts[hole] = undefined":
      "ConditionalExpression: the next entry in the slot overwrites them, and they only use memory until then",
    "const low = from[at + HASH_LOW] as number": "ArithmeticOperator: it is the first",
    "for (let slot = 0; slot < slots; slot++) {":
      "EqualityOperator: the slot beyond the end is read as a free one",
    "if (from[at + HASH_HIGH] === 0) continue": "ConditionalExpression: a free slot makes a free slot",
    "if (this.#parts !== undefined) this.#parts[free] = fromParts?.[slot]":
      "OptionalChaining: there were some where there are some",
  },
  "core/src/stores/store-listeners.ts": {
    "this.#events = new SafeEvents<{ event: [Event] }>({ event: true }, (error) =>":
      "BooleanLiteral: only the name of the member matters",
  },
  "core/src/ground/quick-strings.ts": {
    "for (let i = 0; i < ENOUGH_CALLS; i++) methodOf(heir)":
      "EqualityOperator: it is found one call more often",
  },
  "redis/src/batching/batch-policy.ts": {
    "const isBusy = this.#rest <= MOST_REST_OF_BUSY": "EqualityOperator: an average is hardly ever just that",
    "if (this.#rest < LEAST_REST_OF_WAITING) return": "EqualityOperator: an average is hardly ever just that",
  },
  "redis/src/batching/batch-sender.ts": {
    "if (this.#canSend()) outsideRequests(this.#sendAll)":
      "ConditionalExpression: a shortcut, as what sends looks for itself",
  },
  "redis/src/batching/queue.ts": {
    "if (arrivals.length === 0) return firstMs": "ConditionalExpression: a look at the clock for nobody",
    "this.#waiting = this.#waiting.length === 0 ? arrivals : this.#waiting.concat(arrivals)":
      "ConditionalExpression: nothing with them is the same, in another list",
  },
  "redis/src/batching/watchdog.ts": {
    "if (deadlineMs >= this.#dueMs) return": "EqualityOperator: the same deadline would be set again",
  },
  "redis/src/clients/commands-of.ts": {
    'const [, scheme = "redis"] = /^([a-z][\\w+.-]*):\\/\\//i.exec(String(client)) ?? []':
      "ArrayDeclaration: only the second element is read, and the mutant's array has only one",
  },
  "redis/src/clients/ioredis-cluster.ts": {
    'if (typeof asking !== "function" || Object.hasOwn(node, "asking")) return':
      "ConditionalExpression: all clients of ioredis have it",
  },
  "redis/src/clients/key-slot.ts": {
    "if (code > 0x7f) return slotOfBytes(Buffer.from(hashed))":
      "ConditionalExpression,EqualityOperator: it is the quicker way to the same bytes",
  },
  "redis/src/deny-cache.ts": {
    "for (let i = 0; i < checks.length; i++) {":
      "EqualityOperator: the result beyond the last check is undefined, so the loop continues",
    "if (checks.some(countsRefusals)) {":
      "ConditionalExpression: the calculation shows no change if no check counts refusals, and is only slower",
    "if (policy === known || algorithmOf(policy).endsByRule !== true) return true":
      "ConditionalExpression: the comparison of a policy with itself returns the same, only slower",
  },
  "redis/src/key.ts": {
    "if (partition !== lastPartition) {": "ConditionalExpression: it would be computed again",
  },
  "redis/src/node/breaker.ts": {
    "if (this.#isOpen) this.#close()":
      "ConditionalExpression: one that is closed has no timer and no probe to end",
  },
  "redis/src/node/node.ts": {
    'if (!this.knowsTime && !(await this.learnTime(patience.withinMs))) throw this.silence("not-applied")':
      "ConditionalExpression: after a silence the deadline has usually passed, so sending throws as well",
    "if (this.breaker.isOpen) this.#explain(failure)":
      "ConditionalExpression: the reason is read only while the breaker is open, and the failure that opens it writes it",
    'if (performance.now() > deadlineMs) throw this.silence("not-applied")':
      "EqualityOperator: at the very end either will do",
  },
  "redis/src/redis-store.ts": {
    "if (!this.#denied.isEmpty) {":
      "ConditionalExpression,EqualityOperator: an empty cache answers nothing, only slower",
    "if (granted && this.#denied.isEmpty) return":
      "ConditionalExpression,EqualityOperator: of a grant only known counters are learned",
    "const parts: Promise<void>[] = []": "ArrayDeclaration: Promise.all ignores what is not a promise",
    "if (refunds.length === 0) return":
      "ConditionalExpression: an empty list of refunds makes no call either",
  },
  "redis/src/refund-batcher.ts": {
    "if (this.#queue.length === 0) soon(this.#pump)":
      "ConditionalExpression: once more, there would be nothing left to send",
    "if (late.length === 0) return batch":
      "ConditionalExpression: the filter below returns all of them, but an error is created for nothing",
  },
  "redis/src/scripts.ts": {
    "if (at === -1) throw new Error(`formulas.lua has no formula ${name}.`)":
      "StringLiteral: only a developer who misspells a formula sees it, when the file is loaded",
  },
  "redis/src/scripts/packed-call.ts": {
    "if (text === undefined) {": "ConditionalExpression: the digits would be computed again",
  },
  "redis/src/scripts/script-input.ts": {
    "this.#keys ??= this.checks.map(this.#keyOf)": "AssignmentOperator: they are named again each time",
    "for (let i = 0; i < this.#policies.length; i++) {":
      "EqualityOperator: where there is no policy there is no kind of it",
    "one === other ||": "ConditionalExpression: a shortcut, mostly taken",
  },
  "redis/src/scripts/script-reply.ts": {
    'const wide = typeof value === "string" ? WIDE.exec(value) : null':
      "ConditionalExpression: a number never matches",
  },
  "redis/src/scripts/take-call.ts": {
    "if (asked.checks.length !== 1 || this.#entries.length === 0) return undefined":
      "ConditionalExpression,LogicalOperator,EqualityOperator: then each is looked for, and not found",
    "if (isSame(asked, latest.asked)) return latest": "ConditionalExpression: a shortcut",
    "if (this.#last === undefined) {": "ConditionalExpression: the same entries would be collected again",
    "if (list.length === end) return undefined": "ConditionalExpression: an empty table tells the same",
    "if (later === 0) return state": "ConditionalExpression: nothing less is the same",
  },
  "redis/src/take-in-turn.ts": {
    "const times: number[] = []":
      "ArrayDeclaration: what has a time and no counter is told as nothing either way",
  },
  "redis/src/topology.ts": {
    "if (!this.#commands.isCluster) return true":
      "ConditionalExpression,BooleanLiteral: taken in turn the one slot answers the same, and later",
  },
  "express/src/layers.ts": {
    'function hasParameters({ rawPath = "/", params = {}, keys = [] }: Layer): boolean {':
      "StringLiteral: any string without a pattern",
  },
  "express/src/route.ts": {
    'if (baseUrl !== "" && isBelowPattern(route, app)) return undefined':
      "ConditionalExpression,StringLiteral: what is below nothing is below no pattern, if it is looked up or not",
    "if (known === undefined) {": "ConditionalExpression: it is found once more",
  },
  "fastify/src/registration.ts": {
    'if (anyOwn || name !== "onRequest" || !decidesAtOnce) decideAt(name, request, reply, done)':
      "ConditionalExpression,EqualityOperator,StringLiteral: with both it is decided the same",
  },
  "koa/src/error-headers.ts": {
    "if (error === null || error === undefined) return":
      "ConditionalExpression,LogicalOperator: without one nothing is taken off",
  },
}
