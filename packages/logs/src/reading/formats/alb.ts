import { isoTime } from "../times.ts"
import type { LogFormat } from "./format.ts"
import { nginxFormat } from "./nginx.ts"
import type { Meaning } from "./segment.ts"

const APPLICATION_LINE =
  "$type $time $elb $client:$client_port $target $request_processing_time $target_processing_time " +
  '$response_processing_time $elb_status_code $target_status_code $received_bytes $sent_bytes "$request" "$user_agent" ' +
  '$ssl_cipher $ssl_protocol $target_group_arn "$trace_id" "$domain_name" "$chosen_cert_arn" $matched_rule_priority ' +
  '$request_creation_time "$actions_executed"'

const CLASSIC_LINE =
  "$request_creation_time $elb $client:$client_port $backend $request_processing_time $backend_processing_time " +
  "$response_processing_time $elb_status_code $backend_status_code $received_bytes $sent_bytes " +
  '"$request" "$user_agent" $ssl_cipher $ssl_protocol'

const MEANINGS: Readonly<Record<string, Meaning>> = {
  client: { kind: "address" },
  client_port: { kind: "port" },
  elb_status_code: { kind: "status" },
  user_agent: { kind: "header", name: "user-agent" },
  // `time` is the time when the response was sent.
  request_creation_time: { kind: "time", read: isoTime, resolutionMs: 1, isEnd: false },
}

/**
 * Access logs of the AWS Application Load Balancer, in the format since 2018, which contains `request_creation_time`.
 * The members after `actions_executed` are not read.
 */
export const alb: LogFormat = nginxFormat(APPLICATION_LINE, {
  name: "alb",
  allowsMore: true,
  meanings: MEANINGS,
})

/** Access logs of the AWS Classic Load Balancer. */
export const elb: LogFormat = nginxFormat(CLASSIC_LINE, { name: "elb", allowsMore: true, meanings: MEANINGS })
