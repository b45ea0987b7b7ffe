-- One request in five repeats a key that was sent before; keys are bare and quoted in turn.
local thread_count = 0
function setup(thread)
  thread:set("id", thread_count)
  thread_count = thread_count + 1
end

function init(args)
  sent = 0
  math.randomseed(id + 1)
end

function request()
  local n = sent
  if sent > 0 and math.random() < 0.2 then
    n = math.random(0, sent - 1)
  else
    sent = sent + 1
  end
  local key = "t" .. id .. "-" .. n
  if math.random() < 0.5 then key = '"' .. key .. '"' end
  return wrk.format("POST", "/pay", {["Idempotency-Key"] = key}, "{\"n\":\"" .. id .. "-" .. n .. "\"}")
end

local statuses = {}
function response(status)
  statuses[status] = (statuses[status] or 0) + 1
  counts = ""
  for code, number in pairs(statuses) do counts = counts .. code .. "=" .. number .. " " end
end

local threads = {}
local old_setup = setup
function setup(thread)
  old_setup(thread)
  table.insert(threads, thread)
end
function done()
  for i, thread in ipairs(threads) do print("statuses of thread " .. i .. ": " .. (thread:get("counts") or "")) end
end
