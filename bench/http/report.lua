-- One line of JSON at the end of a run of wrk, in place of its text. `status` counts answers of 400 and above.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"durationUs":%d,"p99Us":%d,"status":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
