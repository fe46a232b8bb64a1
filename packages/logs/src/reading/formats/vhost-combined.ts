import { apacheFormat } from "./apache.ts"
import type { LogFormat } from "./format.ts"

/** Apache's format with the virtual host in front, as Debian configures it. */
export const vhostCombined: LogFormat = apacheFormat(
  '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
  "vhost_combined",
)
