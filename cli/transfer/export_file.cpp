#include "transfer/export_file.hpp"

#include <fmt/core.h>

#include <array>
#include <set>

#include "render.hpp"

namespace idem::cli {

namespace {

constexpr std::string_view kFormat = "idem.export/1";

std::int64_t micros_of(Time time) { return time.time_since_epoch().count(); }

Error wrong(std::string what) { return fail(errc::invalid_argument, std::move(what)); }

// The members of one line; each is asked for once, and what nobody asked for is a fault.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  const Json* find(const char* name) {
    const auto at = object_.find(name);
    if (at == object_.end()) return nullptr;
    ++asked_;
    return &*at;
  }
  bool text(const char* name, std::string& into) {
    const Json* value = find(name);
    if (value == nullptr) return true;
    if (!value->is_string()) return refuse(name);
    into = value->get<std::string>();
    return true;
  }
  template <class Number>
  bool number(const char* name, Number& into) {
    const Json* value = find(name);
    if (value == nullptr) return true;
    if (!value->is_number_unsigned() ||
        value->get<std::uint64_t>() >
            static_cast<std::uint64_t>(std::numeric_limits<Number>::max()))
      return refuse(name);
    into = value->get<Number>();
    return true;
  }
  bool time(const char* name, Time& into) {
    std::int64_t micros = micros_of(into);
    if (!number(name, micros)) return false;
    into = Time(Micros(micros));
    return true;
  }
  bool flag(const char* name, bool& into) {
    const Json* value = find(name);
    if (value == nullptr) return true;
    if (!value->is_boolean()) return refuse(name);
    into = value->get<bool>();
    return true;
  }
  bool refuse(const std::string& name) {
    if (fault_.empty()) fault_ = "'" + name + "' is not what it must be";
    return false;
  }
  [[nodiscard]] std::string fault() const {
    if (!fault_.empty()) return fault_;
    return asked_ == object_.size() ? std::string() : "it has a member that no record has";
  }

 private:
  const Json& object_;
  std::size_t asked_ = 0;
  std::string fault_;
};

template <class Word>
bool word(Members& members, const char* name, Word& into, Word last) {
  std::string text(to_string(into));
  if (!members.text(name, text)) return false;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    into = static_cast<Word>(i);
    if (to_string(into) == text) return true;
  }
  return members.refuse(name);
}

bool read_result(Members& members, Record& record) {
  std::string hex;
  if (!members.text("result", record.result) || !members.text("result_hex", hex)) return false;
  if (hex.empty()) return true;
  auto bytes = from_hex(hex);
  if (!bytes || !record.result.empty()) return members.refuse("result_hex");
  record.result = std::move(*bytes);
  return true;
}

bool read_tokens(Members& members, Record& record) {
  std::string hash;
  std::string owner;
  if (!members.text("request_hash", hash) || !members.text("owner", owner)) return false;
  const auto parsed_hash = Fingerprint::from_hex(hash);
  if (!parsed_hash) return members.refuse("request_hash");
  const auto parsed_owner = Owner::from_hex(owner);
  if (!parsed_owner) return members.refuse("owner");
  record.request_hash = *parsed_hash;
  record.owner = *parsed_owner;
  return true;
}

bool read_members(Members& members, Listed& item) {
  Record& record = item.record;
  return members.text("key", item.key.key) && members.text("biz", item.key.biz_type) &&
         members.text("tenant", item.key.tenant) &&
         word(members, "status", record.status, Status::failed) &&
         word(members, "kind", record.fail_kind, FailKind::abandoned) &&
         members.number("attempt", record.attempt) && members.number("fence", record.fence) &&
         members.number("version", record.version) && read_tokens(members, record) &&
         members.time("lease_until", record.lease_until) &&
         members.time("retry_at", record.retry_at) &&
         members.time("create_time", record.create_time) &&
         members.time("update_time", record.update_time) &&
         members.time("expires_at", record.expires_at) &&
         members.flag("tombstone", record.tombstone) && read_result(members, record);
}

// Json::parse with a fault instead of an exception.
Json parsed(std::string_view line) { return Json::parse(line, nullptr, false); }

[[noreturn]] void refuse(const std::string& name, std::uint64_t line, const std::string& why) {
  throw Failure::usage(fmt::format("{}:{}: {}", name, line, why));
}

// Versions are microseconds since 1970, more only while a clock is set back: this is the year 2255,
// and what a Redis script can compare exactly.
constexpr std::uint64_t kVersionMax = (std::uint64_t{1} << 53) - 1;

constexpr std::size_t kHeadBytesMax = 4096;
// A result of 64 MiB, which the largest stores take, each byte as \u0000, and what else a record
// holds.
constexpr std::size_t kLineBytesMax = std::size_t{400} << 20;

// As std::getline, but stops within a line of more than `max` bytes: /dev/zero has only one.
bool next_line(std::istream& file, std::string& line, std::size_t max) {
  std::array<char, 1 << 12> piece;
  line.clear();
  do {
    file.clear(file.rdstate() & ~std::ios::failbit);
    file.getline(piece.data(), piece.size());
    const auto got = static_cast<std::size_t>(file.gcount());
    line.append(piece.data(), file.good() ? got - 1 : got);  // good: it took the line's end, too
  } while (file.fail() && !file.bad() && !file.eof() && line.size() <= max);
  return !line.empty() || file.good();
}

}  // namespace

std::string to_export_line(const Listed& item) {
  const Record& record = item.record;
  Json line{{"key", item.key.key}};
  if (!item.key.biz_type.empty()) line["biz"] = item.key.biz_type;
  if (!item.key.tenant.empty()) line["tenant"] = item.key.tenant;
  line["status"] = to_string(record.status);
  if (record.fail_kind != FailKind::none) line["kind"] = to_string(record.fail_kind);
  line["attempt"] = record.attempt;
  line["fence"] = record.fence;
  line["version"] = record.version;
  line["request_hash"] = record.request_hash.hex();
  line["owner"] = record.owner.hex();
  if (record.lease_until != Time{}) line["lease_until"] = micros_of(record.lease_until);
  if (record.retry_at != Time{}) line["retry_at"] = micros_of(record.retry_at);
  line["create_time"] = micros_of(record.create_time);
  line["update_time"] = micros_of(record.update_time);
  line["expires_at"] = micros_of(record.expires_at);
  if (record.tombstone) line["tombstone"] = true;
  if (!record.result.empty()) put_bytes(line, "result", record.result);
  return line.dump();
}

result<Listed> from_export_line(std::string_view text) {
  const Json line = parsed(text);
  if (!line.is_object()) return wrong("it is not a JSON object");
  Members members(line);
  Listed item;
  if (!read_members(members, item) || !members.fault().empty()) return wrong(members.fault());
  if (item.record.version > kVersionMax || item.record.fence > item.record.version)
    return wrong("its version or fence is larger than any store writes");
  if (const auto good = check_key(item.key); !good) return good.error();
  if (const std::string_view damage = damage_of(item.record); !damage.empty())
    return wrong("no such record can be: " + std::string(damage));
  return item;
}

ExportWriter::ExportWriter(std::function<void(std::string_view)> write) : write_(std::move(write)) {
  line(std::string(kExportHead));
}

void ExportWriter::add(const Listed& item) {
  line(to_export_line(item));
  ++records_;
}

void ExportWriter::end() {
  Json last{{"end", true}, {"records", records_}, {"sha256", digest_.end().hex()}};
  write_(last.dump() + "\n");
}

void ExportWriter::line(std::string text) {
  text += '\n';
  digest_.add(text);
  write_(text);
}

std::uint64_t read_export(std::istream& file, const std::string& name,
                          const std::function<void(Listed&&)>& each) {
  FingerprintStream digest;
  std::string line;
  std::uint64_t number = 0;
  while (next_line(file, line, number == 0 ? kHeadBytesMax : kLineBytesMax)) {
    ++number;
    if (line.size() > kLineBytesMax) refuse(name, number, "the line is too long for an export");
    if (number == 1) {
      const Json head = parsed(line);
      if (!head.is_object() || head.value("format", Json()) != Json(kFormat))
        refuse(name, 1, "not an export of idem (" + std::string(kFormat) + ")");
    } else if (line.starts_with("{\"end\"")) {
      const Json end = parsed(line);
      if (!end.is_object() || end.value("records", Json()) != Json(number - 2) ||
          end.value("sha256", Json()) != Json(digest.end().hex()))
        refuse(name, number, "count or digest do not fit: the file was changed");
      if (file.peek() != std::istream::traits_type::eof())
        refuse(name, number + 1, "something follows the end");
      return number - 2;
    } else {
      auto item = from_export_line(line);
      if (!item) refuse(name, number, item.error().message);
      each(std::move(*item));
    }
    digest.add(line);
    digest.add("\n");
  }
  refuse(name, number + 1, "the end is missing: the file was cut");
}

}  // namespace idem::cli
