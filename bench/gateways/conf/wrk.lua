-- Prints what wrk measured as one line of JSON. It defines no per-request function, so the
-- requests themselves are made as fast as without it.
function done(summary, latency)
    local errors = summary.errors
    print(string.format(
        '{"requests":%d,"micros":%d,"not_2xx":%d,"broken":%d,"p50_us":%d,"p99_us":%d}',
        summary.requests, summary.duration, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
