/** Header fields in Node's form. Names are lower case. A repeated field is a list, or is joined with ", ". */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * The facts of a request that an adapter provides for the built-in fields. Every member may be absent. An absent member
 * is a missing field, never an error.
 */
export interface RequestFacts {
  /**
   * The HTTP method, in upper or lower case, for `match.methods` and for the field `method`. That field treats HEAD as
   * GET.
   */
  readonly method?: string | undefined
  /** The original method, if the app has overridden it. `match.methods` checks both. Default: `method`. */
  readonly originalMethod?: string | undefined
  /** The original request target, including mount points: "/users/7?full=1". */
  readonly url?: string | undefined
  /**
   * If the app has rewritten `url`, the request target by which the app routes, including mount points. `match.path`
   * checks both. Default: `url`.
   */
  readonly routedUrl?: string | undefined
  /**
   * The framework's route pattern, such as "/users/:id". Absent if the framework does not provide the pattern; never
   * the raw path.
   */
  readonly route?: string | undefined
  /** Header fields, for `header:NAME` and for the client's address as reported by a trusted proxy. */
  readonly headers?: HeaderFields | undefined
  /** The parsed query, for `query:NAME`: an object of strings. A repeated parameter is a list and counts as missing. */
  readonly query?: unknown
  /** The route parameters, for `param:NAME`: an object of strings. */
  readonly params?: unknown
  /**
   * Whether a body follows the headers, if the server reports that. Over HTTP/2, a body need not be announced by a
   * header. Default: determined from the headers.
   */
  readonly hasBody?: boolean | undefined
  /** The parsed body, for `body:PATH`: an object, whose members may be objects. */
  readonly body?: unknown
  /** The parsed cookies, for `cookie:NAME`: an object of strings. If absent, cookies are read from the header. */
  readonly cookies?: unknown
  /**
   * The only fields that this request has, written as in rules, but with header names in lower case
   * ("header:x-api-key"). A rule that needs any other field does not apply. Rules without a field apply only if the
   * set contains `service`. If absent, every rule applies, and its `onMissing` decides about a missing field.
   */
  readonly onlyFields?: ReadonlySet<string> | undefined
  /**
   * True if nobody will say when the request has ended. Rules with `concurrent` then do not apply, because their permits
   * would stay taken until they end by themselves.
   */
  readonly cannotRelease?: boolean | undefined
  /** Address of the socket's peer; undefined if the socket is already closed. */
  readonly remoteAddress?: string | undefined
  /**
   * An object that lives as long as the connection and belongs to one client, such as Node's socket. The group of
   * `remoteAddress` is computed once and stored on this object, under a symbol. The group is computed for each
   * request if this object is absent or frozen, or if its `remoteAddress` is an own property, which the app may
   * change.
   */
  readonly keepsAddress?: object | undefined
  /**
   * The name of the framework's own setting for trusted proxies, if the app has set it: "Express' setting `trust
   * proxy`". Sluice does not use this setting, and the warning about an ignored header contains its name.
   */
  readonly proxySetting?: string | undefined
}

/**
 * A function that reads the address or the address group of the client behind a request. The function returns undefined
 * if the client does not have an address.
 */
export type ClientAddressReader = (facts: RequestFacts) => string | undefined

/**
 * A function that returns the text of a field for one request; undefined if the field is missing. `request` is the
 * framework's own object, which the app's extractors receive. Does not throw.
 */
export type FieldReader = (facts: RequestFacts, request: unknown) => string | undefined
