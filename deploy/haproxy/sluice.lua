local ADMIT_WITHOUT_ANSWER = false
local LEFT_OUT = { "connection", "content-length", "expect", "transfer-encoding",
                   "upgrade", "x-original-url", "x-forwarded-method", "x-forwarded-uri" }
local FOR_CLIENT = { "ratelimit", "ratelimit-policy", "retry-after", "content-type",
                     "cache-control", "link" }

core.register_action("sluice", { "http-req" }, function(txn, url)
  local headers = txn.http:req_get_headers()
  for _, name in ipairs(LEFT_OUT) do headers[name] = nil end
  headers["x-original-method"] = { [0] = txn.f:method() }
  headers["x-original-uri"] = { [0] = txn.f:pathq() }
  -- Behind another proxy: (txn.f:req_hdr("x-forwarded-for") or "") .. ", " .. txn.f:src()
  headers["x-forwarded-for"] = { [0] = txn.f:src() }

  -- "listen sluice" must have a shorter timeout: HAProxy repeats longer calls.
  local answer = core.httpclient():get({ url = url, headers = headers, timeout = 1000 })
  local function header(name)
    return answer.headers and answer.headers[name] and answer.headers[name][0]
  end

  if answer.status == 204 then
    txn:set_var("txn.ratelimit", header("ratelimit") or "")
    txn:set_var("txn.ratelimit_policy", header("ratelimit-policy") or "")
    return
  end
  -- HAProxy's own error pages
  local is_gone = answer.status >= 502 and answer.status <= 504
    and header("content-type") == "text/html"
  if is_gone and ADMIT_WITHOUT_ANSWER then return end
  local reply = txn:reply({ status = answer.status, body = answer.body })
  for _, name in ipairs(FOR_CLIENT) do
    if header(name) then reply:add_header(name, header(name)) end
  end
  txn:done(reply)
end, 1)
