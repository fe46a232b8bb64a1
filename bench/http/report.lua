-- Prints one line of JSON at the end of a run of wrk. `status` counts responses with a status of 400 or above.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"durationUs":%d,"p99Us":%d,"status":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
