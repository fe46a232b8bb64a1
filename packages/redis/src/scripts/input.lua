-- Decodes the input of a script: ARGV[1] is a JSON list, which begins with `givenNow` and `untilMs`.

local floor, fmod, max, min = math.floor, math.fmod, math.max, math.min

if not input then
  input = cjson.decode(ARGV[1])
  givenNow, untilMs = input[1], input[2]
  -- USE now
end
