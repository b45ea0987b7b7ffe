#include "idem/testing/describe.hpp"

#include <array>
#include <cstdio>

namespace idem::testing {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

// "attempt 2, fence 17, lease left 30s"
std::string attempt(std::uint32_t count) { return "attempt " + std::to_string(count); }

std::string flag(bool set, const char* name) { return set ? std::string(", ") + name : ""; }

}  // namespace

std::string quote(std::string_view bytes) {
  constexpr std::size_t kShown = 60;
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      std::array<char, 8> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x", byte);
      text += hex.data();
    }
  }
  text += '"';
  if (bytes.size() > kShown) text += "... (" + number(bytes.size()) + " bytes)";
  return text;
}

std::string length(Micros d) {
  const bool negative = d < Micros(0);
  std::int64_t rest = negative ? -d.count() : d.count();
  if (rest == 0) return "0s";
  std::string text = negative ? "-" : "";
  const std::int64_t units[] = {3'600'000'000, 60'000'000, 1'000'000, 1'000, 1};
  const char* names[] = {"h", "m", "s", "ms", "us"};
  for (std::size_t i = 0; i < std::size(units); ++i) {
    if (rest >= units[i]) text += std::to_string(rest / units[i]) + names[i];
    rest %= units[i];
  }
  return text;
}

std::string describe(const Token& token) {
  return "owner " + token.owner.hex() + ", fence " + number(token.fence);
}

std::string describe(const Claimed& outcome) {
  const Lease& lease = outcome.lease;
  std::string text = "claimed (" + std::string(to_string(lease.kind())) + ", " +
                     attempt(lease.attempt()) + ", fence " + number(lease.fence());
  if (lease.previous_fence() != 0) text += ", previous fence " + number(lease.previous_fence());
  return text + ", lease left " + length(lease.lease_left()) + ")";
}

std::string describe(const InProgress& outcome) {
  return "in progress (" + attempt(outcome.attempt) + ", retry after " +
         length(outcome.retry_after) + ")";
}

std::string describe(const Replay& outcome) {
  if (!outcome.retained) {
    return "replay not retained (" + number(outcome.size) + " bytes, digest " +
           outcome.digest.hex() + flag(outcome.own, "own") + ")";
  }
  return "replay of " + quote(outcome.result) + (outcome.own ? " (own)" : "");
}

std::string describe(const Mismatch&) { return "mismatch"; }

std::string describe(const Backoff& outcome) {
  return "backoff (retry after " + length(outcome.retry_after) + ")";
}

std::string describe(const Failed& outcome) {
  return "failed " + std::string(to_string(outcome.kind)) + " " + quote(outcome.reason);
}

std::string describe(const Exhausted& outcome) {
  return "exhausted after " + std::to_string(outcome.attempts) + " attempts";
}

std::string describe(const InDoubt& outcome) {
  return "in doubt (" + attempt(outcome.attempt) + ", fence " + number(outcome.fence) + ")";
}

std::string describe(const AlreadyDone&) { return "already done"; }
std::string describe(const Claimable&) { return "claimable"; }

std::string describe(const Completed& outcome) {
  return "completed" + flag(outcome.late, "late") + flag(outcome.already, "already");
}

std::string describe(const Lost& outcome) {
  return outcome.result ? "lost, stored result " + quote(*outcome.result) : "lost";
}

std::string describe(const Conflict& outcome) {
  return "conflict, first result " + quote(outcome.result);
}

std::string describe(const NotProcessing& outcome) {
  return "not processing (" + std::string(to_string(outcome.status)) + ")";
}

std::string describe(const Gone&) { return "gone"; }

std::string describe(const FailRecorded& outcome) {
  return "failure recorded" + flag(outcome.already, "already");
}

std::string describe(const Renewed& outcome) {
  return "renewed (lease left " + length(outcome.lease_until - outcome.now) +
         flag(outcome.late, "late") + ")";
}

std::string describe(const RenewRefused& outcome) {
  return "renewal refused (lease left " + length(outcome.lease_left) + ")";
}

std::string describe(const Released&) { return "released"; }

std::string describe(const Executed& outcome) {
  return "executed " + quote(outcome.result) + " (" + attempt(outcome.attempt) +
         flag(outcome.late, "late") + ")";
}

std::string describe(const ActionFailed& outcome) {
  return "action failed " + std::string(to_string(outcome.kind)) + " " + quote(outcome.reason);
}

std::string describe(const Swept& swept) {
  return "swept " + number(swept.abandoned) + " abandoned, " + number(swept.expired) + " expired";
}

std::string describe(const Record& record) {
  std::string text = std::string(to_string(record.status));
  if (record.status == Status::failed) text += " " + std::string(to_string(record.fail_kind));
  text += " (" + attempt(record.attempt) + ", version " + number(record.version) + ", " +
          describe(record.token()) + ", hash " + record.request_hash.hex().substr(0, 8);
  const auto instant = [&](const char* name, Time at) {
    if (at != Time{})
      text += std::string(", ") + name + " " +
              number(static_cast<std::uint64_t>(at.time_since_epoch().count()));
  };
  instant("lease until", record.lease_until);
  instant("retry at", record.retry_at);
  instant("created", record.create_time);
  instant("updated", record.update_time);
  instant("expires", record.expires_at);
  return text + flag(record.tombstone, "tombstone") + ", result " + quote(record.result) + ")";
}

std::string describe(const Found& found) { return "found " + describe(found.record); }

std::string describe(const Answer& answer) {
  switch (answer.state) {
    case Answer::State::written:
      return "written " + describe(answer.held);
    case Answer::State::stands:
      return "stands " + describe(answer.held);
    case Answer::State::absent:
      return "absent";
    case Answer::State::failed:
      return "failed: " + describe(answer.error);
  }
  return "?";
}

std::string describe(const StoreStats& stats) {
  return number(stats.processing) + " processing, " + number(stats.success) + " success, " +
         number(stats.failed) + " failed, " + number(stats.expired) + " of them expired";
}

std::string describe(const Page& page) {
  std::string text = "page of " + number(page.items.size());
  for (const Listed& item : page.items) text += " " + quote(item.key.key);
  return text + (page.cursor.empty() ? ", the last" : ", more to come");
}

std::string describe(const Error& error) {
  return "error " + std::string(to_string(error.code)) + ": " + error.message;
}

std::string describe(const Key& key) {
  return quote(key.tenant) + "/" + quote(key.biz_type) + "/" + quote(key.key);
}

}  // namespace idem::testing
