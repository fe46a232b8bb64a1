-- Runs a command on a key that INCRBY, HINCRBY or HSET has just created without a TTL. The command must succeed. The
-- command can fail, for example when the Redis user may not run it. Before raising the error, deletes the field if
-- one is given, otherwise the key. Otherwise the key, which has no TTL, would count forever.
local function orForget(key, field, ...)
  local reply = redis.pcall(...)
  if type(reply) ~= "table" or not reply.err then return reply end
  if field then redis.pcall("HDEL", key, field) else redis.pcall("DEL", key) end
  error(reply.err, 0)
end
