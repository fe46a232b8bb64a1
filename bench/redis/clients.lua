-- Sends requests of 10,000 clients in a random order. The requests are prepared before the load begins.
-- report.lua prints the result.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "../http/report.lua")

local CLIENTS = 10000
local requests = {}

function init()
  for i = 1, CLIENTS do
    wrk.headers["x-client"] = string.format("10.%d.%d.%d", i % 7, math.floor(i / 256), i % 256)
    requests[i] = wrk.format("GET", "/")
  end
end

function request()
  return requests[math.random(CLIENTS)]
end
