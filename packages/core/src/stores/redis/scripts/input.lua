-- The input of a script: a list in JSON or, in a call of one check, the arguments of take-one.lua. Both have
-- the time to decide at (-1 for the server's own) and the time until which the script counts.

local input = not ARGV[2] and cjson.decode(ARGV[1])
local givenNow = input and input[1] or tonumber(ARGV[9] or -1)
local untilMs = input and input[2] or tonumber(ARGV[1])
local nowMs = givenNow
if nowMs < 0 then
  local time = redis.call("TIME")
  nowMs = time[1] * 1000 + floor(time[2] / 1000)
end
