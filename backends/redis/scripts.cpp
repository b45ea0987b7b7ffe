#include "scripts.hpp"

#include <openssl/evp.h>

#include <array>

namespace idem::redis {
namespace {

// Numbers in Lua are doubles: whole µs are exact up to 2^53, the year 2255; no instant of a record
// is later (the clock plus twice the longest duration).
//
// `P` is a packer of numbers, `now` the time. A virtual clock sends its own now instead of an
// offset to the server's: a test that stops exactly at a deadline must find it exactly there.
constexpr std::string_view kTime = R"lua(
local P = struct.pack
local now
if ARGV[1] == '' then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
else
  now = tonumber(string.sub(ARGV[1], 2))
end
)lua";

// The draft's fence stands at byte 17 of the body (record_codec.cpp).
//
// A claim is nearly always the first of its key: then it is TIME and one SET that carries NX and
// the expiry. A floor that stands in the way is no record: it is replaced in the same step.
constexpr std::string_view kInsert = R"lua(
local body = ARGV[4]
local digest = string.sub(body, 1, 8)
local function record(head)
  return 'IR2' .. head .. string.sub(redis.sha1hex(head .. digest), 1, 16) .. body
end
local expires = now + ARGV[3]
local version = struct.unpack('<I8', body, 17)
if now > version then version = now end
local head = P('<I8I8I8I8', now, version, now, expires)
local old = redis.call('SET', KEYS[1], record(head), 'NX', 'GET', 'PX', ARGV[2])
if not old then return 'W' .. P('<I8', now) .. head end
if string.sub(old, 1, 3) ~= 'IT1' or #old ~= 11 then return 'S' .. P('<I8', now) .. old end
local floor = struct.unpack('<I8', old, 4)
if floor >= version then version = floor + 1 end
head = P('<I8I8I8I8', now, version, now, expires)
redis.call('SET', KEYS[1], record(head), 'PX', ARGV[2])
return 'W' .. P('<I8', now) .. head
)lua";

// Leaves unless a whole record stands there; a changed head is never carried over into a new one.
constexpr std::string_view kFind = R"lua(
local old = redis.call('GET', KEYS[1])
if not old or (string.sub(old, 1, 3) == 'IT1' and #old == 11) then return 'A' .. P('<I8', now) end
local function stands() return 'S' .. P('<I8', now) .. old end
if #old < 139 or string.sub(old, 1, 3) ~= 'IR2' then return stands() end
local seal = redis.sha1hex(string.sub(old, 4, 35) .. string.sub(old, 52, 59))
if string.sub(old, 36, 51) ~= string.sub(seal, 1, 16) then return stands() end
local _, version, created, expires = struct.unpack('<I8I8I8I8', old, 4)
)lua";

constexpr std::string_view kReplace = R"lua(
local fresh = ARGV[6] == '1'
if version ~= tonumber(ARGV[5]) or (now >= expires and not fresh) then return stands() end
version = math.max(version + 1, now, (struct.unpack('<I8', ARGV[4], 17)))
if fresh then created = now end
local head = P('<I8I8I8I8', now, version, created, now + ARGV[3])
local body = ARGV[4]
local tag = string.sub(redis.sha1hex(head .. string.sub(body, 1, 8)), 1, 16)
redis.call('SET', KEYS[1], 'IR2' .. head .. tag .. body, 'PX', ARGV[2])
return 'W' .. P('<I8', now) .. head
)lua";

// The floor stays where the next version could otherwise be lower: within its own lifetime of the
// last one.
constexpr std::string_view kAway = R"lua(
if ARGV[1] ~= '' or version + ARGV[2] * 1000 > now then
  redis.call('SET', KEYS[1], 'IT1' .. P('<I8', version), 'PX', ARGV[2])
else
  redis.call('DEL', KEYS[1])
end
return 'W' .. P('<I8', now)
)lua";

constexpr std::string_view kRemove = R"lua(
if version ~= tonumber(ARGV[3]) then return stands() end
)lua";

constexpr std::string_view kSweep = R"lua(
if now < expires then return 'A' .. P('<I8', now) end
)lua";

constexpr std::string_view kLoad = R"lua(
local old = redis.call('GET', KEYS[1])
if not old or (string.sub(old, 1, 3) == 'IT1' and #old == 11) then return 'A' .. P('<I8', now) end
return 'S' .. P('<I8', now) .. old
)lua";

// A long record is not copied as a whole, neither to Lua nor to the client.
constexpr std::string_view kPeek = R"lua(
local bytes = redis.call('STRLEN', KEYS[1])
local old
if bytes <= tonumber(ARGV[2]) then
  old = redis.call('GET', KEYS[1])
else
  old = redis.call('GETRANGE', KEYS[1], 0, 138)
end
if not old or (string.sub(old, 1, 3) == 'IT1' and bytes == 11) then return 'A' .. P('<I8', now) end
return 'S' .. P('<I8', now) .. P('<I8', bytes) .. old
)lua";

std::string sha1_hex(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[hash[i] >> 4];
    hex += kDigits[hash[i] & 15];
  }
  return hex;
}

template <class... Parts>
Script joined(bool writes, Parts... parts) {
  std::string text(kTime);
  (text.append(parts), ...);
  Script script(std::move(text));
  script.writes = writes;
  return script;
}

}  // namespace

Script::Script(std::string source) : text(std::move(source)), sha1(sha1_hex(text)) {}

const Scripts& scripts() {
  static const Scripts all{
      joined(true, kInsert),
      joined(true, kFind, kReplace),
      joined(false, kLoad),
      joined(true, kFind, kRemove, kAway),
      joined(true, kFind, kSweep, kAway),
      joined(false, kPeek),
  };
  return all;
}

}  // namespace idem::redis
