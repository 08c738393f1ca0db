-- One request, sent again and again by wrk: METHOD, then a file with the body or "-", then headers, each as
-- "Name: value". At the end one line that the script reads.

function init(args)
    wrk.method = args[1]
    if args[2] ~= "-" then
        local file = assert(io.open(args[2], "rb"))
        wrk.body = file:read("*a")
        file:close()
    end
    for i = 3, #args do
        local name, value = args[i]:match("^([^:]+): (.*)$")
        wrk.headers[name] = value
    end
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("RESULT %d %d %d %d %d %d\n",
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        e.connect + e.read + e.write + e.timeout, e.status))
end
