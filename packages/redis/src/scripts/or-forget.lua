-- Runs a command that must succeed, on a key that INCRBY, HINCRBY or HSET has just created without a TTL. The command
-- can fail, for example when the Redis user may not run it. Before raising the error, deletes the field if one is
-- given, otherwise the key. Without a TTL, the key would count forever.
local function orForget(key, field, ...)
  local reply = redis.pcall(...)
  if type(reply) ~= "table" or not reply.err then return reply end
  if field then redis.pcall("HDEL", key, field) else redis.pcall("DEL", key) end
  error(reply.err, 0)
end
