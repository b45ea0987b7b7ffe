// An observer that writes what happens as lines, with keys as digests: a log is read by more people
// than may know the keys, and whoever knows a key and its request may get the stored result.
//
//   options.observer = std::make_shared<idem::LogObserver>(
//       [](idem::LogLevel level, std::string_view line) { my_logger(level, line); });
//
//   idem: lost key=3f2a91c0 biz_type=pay fence=1764451200000000
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "idem/observer.hpp"

namespace idem {

// The first 8 hex digits of the SHA-256 of the triple: the same in every process and build.
[[nodiscard]] std::string key_digest(KeyRef key);

enum class LogLevel : std::uint8_t {
  debug,    // claims, completions, failures
  warning,  // lost leases, dropped handles, takeovers
  error,    // conflicts, and what broke
};

// Thread safe if the sink is; the sink must not throw. biz_type is written, with control characters
// as '?'; tenants, results and reasons are not.
class LogObserver final : public Observer {
 public:
  using Sink = std::function<void(LogLevel, std::string_view line)>;
  explicit LogObserver(Sink sink, LogLevel least = LogLevel::warning)
      : sink_(std::move(sink)), least_(least) {}

  void on_claimed(KeyRef key, const Granted& granted) noexcept override;
  void on_completed(KeyRef key, const Completed& completed) noexcept override;
  void on_failed(KeyRef key, FailKind kind) noexcept override;
  void on_lost(KeyRef key, const Token& token) noexcept override;
  void on_conflict(KeyRef key, const Token& token) noexcept override;
  void on_dropped(KeyRef key, const Token& token) noexcept override;
  void on_error(std::string_view verb, KeyRef key, const Error& error) noexcept override;

 private:
  void write(LogLevel level, std::string_view event, KeyRef key,
             std::string_view more) const noexcept;

  const Sink sink_;
  const LogLevel least_;
};

}  // namespace idem
