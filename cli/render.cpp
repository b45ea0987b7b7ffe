#include "render.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace idem::cli {

namespace {

Json named(std::string_view outcome) { return Json{{"outcome", outcome}}; }

Json with_result(Json answer, const std::optional<std::string>& stored) {
  if (stored) put_bytes(answer, "result", *stored);
  return answer;
}

struct ToJson {
  Json operator()(const Claimed& claimed) const {
    const Lease& lease = claimed.lease;
    Json answer = named("claimed");
    answer["kind"] = to_string(lease.kind());
    answer["attempt"] = lease.attempt();
    answer["fence"] = lease.fence();
    if (lease.previous_fence() != 0) answer["previous_fence"] = lease.previous_fence();
    answer["lease_left_ms"] = ms_left(lease.lease_left());
    answer["owner"] = lease.token().owner.hex();
    return answer;
  }
  Json operator()(const InProgress& other) const {
    Json answer = named("in_progress");
    answer["retry_after_ms"] = ms_to_wait(other.retry_after);
    answer["attempt"] = other.attempt;
    return answer;
  }
  Json operator()(const Replay& replay) const {
    Json answer = named("replay");
    if (replay.retained) {
      put_bytes(answer, "result", replay.result);
    } else {
      answer["retained"] = false;
      answer["size"] = replay.size;
      answer["sha256"] = replay.digest.hex();
    }
    answer["own"] = replay.own;
    return answer;
  }
  Json operator()(const Mismatch&) const { return named("mismatch"); }
  Json operator()(const Backoff& backoff) const {
    Json answer = named("backoff");
    answer["retry_after_ms"] = ms_to_wait(backoff.retry_after);
    return answer;
  }
  Json operator()(const Failed& failed) const {
    Json answer = named("failed");
    answer["kind"] = to_string(failed.kind);
    put_bytes(answer, "reason", failed.reason);
    return answer;
  }
  Json operator()(const Exhausted& exhausted) const {
    Json answer = named("exhausted");
    answer["attempts"] = exhausted.attempts;
    return answer;
  }
  Json operator()(const InDoubt& doubt) const {
    Json answer = named("in_doubt");
    answer["attempt"] = doubt.attempt;
    answer["fence"] = doubt.fence;
    return answer;
  }
  Json operator()(const AlreadyDone&) const { return named("already_done"); }

  Json operator()(const Completed& completed) const {
    Json answer = named("completed");
    answer["late"] = completed.late;
    answer["already"] = completed.already;
    return answer;
  }
  Json operator()(const Lost& lost) const { return with_result(named("lost"), lost.result); }
  Json operator()(const Conflict& conflict) const {
    return with_result(named("conflict"), conflict.result);
  }
  Json operator()(const NotProcessing& other) const {
    Json answer = named("not_processing");
    answer["status"] = to_string(other.status);
    return answer;
  }
  Json operator()(const Gone&) const { return named("gone"); }
  Json operator()(const FailRecorded& recorded) const {
    Json answer = named("failed_recorded");
    answer["already"] = recorded.already;
    return answer;
  }
  Json operator()(const Renewed& renewed) const {
    Json answer = named("renewed");
    answer["late"] = renewed.late;
    answer["lease_left_ms"] = ms_left(renewed.lease_until - renewed.now);
    return answer;
  }
  Json operator()(const RenewRefused& refused) const {
    Json answer = named("renew_refused");
    answer["lease_left_ms"] = ms_left(refused.lease_left);
    return answer;
  }
  Json operator()(const Released&) const { return named("released"); }
};

bool is_utf8(std::string_view bytes) {
  try {
    static_cast<void>(Json(bytes).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

std::string row_value(const std::string& name, const Json& value) {
  if (name.ends_with("_ms")) return human(std::chrono::milliseconds(value.get<std::int64_t>()));
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_string() ? printable(value.get<std::string>()) : value.dump();
}

std::string row_name(std::string name) {
  if (name.ends_with("_ms")) name.resize(name.size() - 3);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace

Json to_json(const ClaimOutcome& outcome) { return std::visit(ToJson{}, outcome); }
Json to_json(const CompleteOutcome& outcome) { return std::visit(ToJson{}, outcome); }
Json to_json(const FailOutcome& outcome) { return std::visit(ToJson{}, outcome); }
Json to_json(const RenewOutcome& outcome) { return std::visit(ToJson{}, outcome); }
Json to_json(const ReleaseOutcome& outcome) { return std::visit(ToJson{}, outcome); }

Json to_json(const Error& error) {
  return Json{{"error", to_string(error.code)}, {"message", error.message}};
}

Json record_to_json(const Record& record, Time now) {
  Json answer = named("found");
  answer["status"] = to_string(record.status);
  if (record.status == Status::failed) answer["kind"] = to_string(record.fail_kind);
  answer["attempt"] = record.attempt;
  answer["fence"] = record.fence;
  if (record.status == Status::processing) {
    const Micros left = record.lease_until - now;
    if (left > Micros(0)) answer["lease_left_ms"] = ms_left(left);
    if (left <= Micros(0)) answer["lease_over_ms"] = ms_left(-left);
  }
  if (record.status == Status::failed && record.retry_at > now)
    answer["retry_after_ms"] = ms_to_wait(record.retry_at - now);
  answer["age_ms"] = ms_left(now - record.create_time);
  answer["unchanged_ms"] = ms_left(now - record.update_time);
  answer["expires_in_ms"] = ms_left(record.expires_at - now);
  answer["request_hash"] = record.request_hash.hex();
  answer["owner"] = record.owner.hex();
  if (record.tombstone) {
    const Replay kept = replay_of_tombstone(record.result);
    answer["retained"] = false;
    answer["size"] = kept.size;
    answer["sha256"] = kept.digest.hex();
  } else if (record.status == Status::success) {
    put_bytes(answer, "result", record.result);
  } else if (record.status == Status::failed) {
    put_bytes(answer, "reason", record.result);
  }
  return answer;
}

void put_bytes(Json& document, const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes)) {
    document[name] = bytes;
  } else {
    document[name + "_hex"] = to_hex(bytes);
  }
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

result<std::string> from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = digit(hex[i]);
    const int low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return fail(errc::invalid_argument, "not hexadecimal digits");
    bytes += static_cast<char>(high * 16 + low);
  }
  if (hex.size() % 2 != 0) return fail(errc::invalid_argument, "an odd number of digits");
  return bytes;
}

namespace {

// The character at the front of `text` if it is one that acts on a terminal, and its bytes.
struct Acting {
  unsigned code = 0;
  std::size_t bytes = 0;  // 0: none
};

Acting acting_at(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return {byte(0), 1};
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return {byte(1), 2};
  if (byte(0) != 0xe2) return {};
  const unsigned code = 0x2000 + ((byte(1) & 0x3f) << 6U) + (byte(2) & 0x3f);
  const bool reorders = code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                        (code >= 0x2066 && code <= 0x2069);
  return reorders ? Acting{code, 3} : Acting{};
}

}  // namespace

std::string printable(std::string_view utf8) {
  std::string text;
  while (!utf8.empty()) {
    const Acting acting = acting_at(utf8);
    if (acting.bytes == 0) {
      text += utf8.front();
    } else if (acting.code == '\n') {
      text += "\\n";
    } else if (acting.code == '\t') {
      text += "\\t";
    } else {
      text += fmt::format("\\u{{{:x}}}", acting.code);
    }
    utf8.remove_prefix(std::max<std::size_t>(acting.bytes, 1));
  }
  return text;
}

std::int64_t ms_left(Micros d) { return std::chrono::floor<std::chrono::milliseconds>(d).count(); }

std::int64_t ms_to_wait(Micros d) {
  return std::chrono::ceil<std::chrono::milliseconds>(d).count();
}

std::string human(Micros d) {
  const std::int64_t ms = ms_left(d);
  if (ms < 0) return "-" + human(-d);
  if (ms < 1000) return fmt::format("{}ms", ms);
  const std::int64_t s = ms / 1000;
  if (s < 10 && ms % 1000 != 0) return fmt::format("{}.{:03}s", s, ms % 1000);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m {}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h {}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d {}h", s / 86400, s / 3600 % 24);
}

void print_document(const Json& document) {
  Json whole{{"schema", "idem.cli/1"}};
  whole.update(document);
  const std::string line = whole.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

std::string to_text(const Json& answer, std::string_view subject) {
  std::string text = row_name(answer.value("outcome", "")) + " " + std::string(subject) + "\n";
  std::size_t width = 0;
  for (const auto& [name, value] : answer.items()) width = std::max(width, row_name(name).size());
  for (const auto& [name, value] : answer.items()) {
    if (name == "outcome") continue;
    text += fmt::format("  {:<{}}  {}\n", row_name(name), width, row_value(name, value));
  }
  return text;
}

}  // namespace idem::cli
