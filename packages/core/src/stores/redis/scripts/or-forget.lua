-- Runs a command that has to succeed on a key which was just made without a time to live, since INCRBY, HINCRBY and HSET give
-- none. Where it fails, as a user may not be allowed to run it, what was made goes again before the call fails: the field of a
-- hash, or the key where no field is named. Without an end it would count for ever.
local function orForget(key, field, ...)
  local reply = redis.pcall(...)
  if type(reply) ~= "table" or not reply.err then return reply end
  if field then redis.pcall("HDEL", key, field) else redis.pcall("DEL", key) end
  error(reply.err, 0)
end
