-- What wrk asks: creates of the rows in a file, one after the other and again from the first, each time with a new id.
-- arguments: FILE TOKEN [KEYS]; with KEYS each request has an Idempotency-Key.
local ends = {}
local count = 0
local hasKeys = false
local headers = { ['Content-Type'] = 'application/json' }

function init(arguments)
  headers['Authorization'] = 'Bearer ' .. arguments[2]
  hasKeys = arguments[3] ~= nil
  for line in io.lines(arguments[1]) do ends[#ends + 1] = line:gsub('^{"id":%-?%d+', '') end
  math.randomseed(os.time())
end

function request()
  count = count + 1
  local id = string.format('%d%09d', math.random(1, 999999999), math.random(0, 999999999))
  if hasKeys then headers['Idempotency-Key'] = id end
  return wrk.format('POST', '/plants', headers, '{"id":' .. id .. ends[count % #ends + 1])
end

function done(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"requests":%d,"microseconds":%d,"failed":%d}\n', summary.requests, summary.duration, failed))
end
