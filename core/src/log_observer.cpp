#include "idem/log_observer.hpp"

#include <algorithm>

#include "idem/fingerprint.hpp"

namespace idem {
namespace {

std::string printable(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return out;
}

std::string fence(const Token& token) { return " fence=" + std::to_string(token.fence); }

}  // namespace

std::string key_digest(KeyRef key) {
  return Fingerprint::of_bytes(storage_name(key)).hex().substr(0, 8);
}

void LogObserver::write(LogLevel level, std::string_view event, KeyRef key,
                        std::string_view more) const noexcept {
  if (level < least_) return;
  std::string line = "idem: " + std::string(event) + " key=" + key_digest(key);
  if (!key.biz_type.empty()) line += " biz_type=" + printable(key.biz_type);
  sink_(level, line + std::string(more));
}

void LogObserver::on_claimed(KeyRef key, const Granted& granted) noexcept {
  const bool takeover = granted.kind == ClaimKind::takeover;
  write(takeover ? LogLevel::warning : LogLevel::debug, "claimed", key,
        " kind=" + std::string(to_string(granted.kind)) + fence(granted.token) +
            " attempt=" + std::to_string(granted.attempt));
}

void LogObserver::on_completed(KeyRef key, const Completed& completed) noexcept {
  write(LogLevel::debug, "completed", key, completed.late ? " late" : "");
}

void LogObserver::on_failed(KeyRef key, FailKind kind) noexcept {
  write(LogLevel::debug, "failed", key, " kind=" + std::string(to_string(kind)));
}

void LogObserver::on_lost(KeyRef key, const Token& token) noexcept {
  write(LogLevel::warning, "lost", key, fence(token));
}

void LogObserver::on_conflict(KeyRef key, const Token& token) noexcept {
  write(LogLevel::error, "conflict", key, fence(token));
}

void LogObserver::on_dropped(KeyRef key, const Token& token) noexcept {
  write(LogLevel::warning, "dropped", key, fence(token));
}

void LogObserver::on_error(std::string_view verb, KeyRef key, const Error& error) noexcept {
  // The message may quote what the caller passed; the code and the verb say what to look for.
  write(LogLevel::error, "error", key,
        " verb=" + std::string(verb) + " code=" + std::string(to_string(error.code)));
}

}  // namespace idem
