// One line of text for every answer of the library, and PrintTo, so that a failed expectation says
// `replay of "paid"` instead of bytes.
//
// Include it (or matchers.hpp) in every file that prints answers.
#pragma once

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>

#include "idem/outcome.hpp"
#include "idem/service.hpp"
#include "idem/store.hpp"

namespace idem::testing {

// Escaped and quoted; longer than 60 bytes: the head and the size.
[[nodiscard]] std::string quote(std::string_view bytes);
// "30s", "-1ms500us" would be "-1.5ms": the exact length of time, zero and negative ones too.
[[nodiscard]] std::string length(Micros d);

[[nodiscard]] std::string describe(const Token& token);
[[nodiscard]] std::string describe(const Claimed& outcome);
[[nodiscard]] std::string describe(const InProgress& outcome);
[[nodiscard]] std::string describe(const Replay& outcome);
[[nodiscard]] std::string describe(const Mismatch& outcome);
[[nodiscard]] std::string describe(const Backoff& outcome);
[[nodiscard]] std::string describe(const Failed& outcome);
[[nodiscard]] std::string describe(const Exhausted& outcome);
[[nodiscard]] std::string describe(const InDoubt& outcome);
[[nodiscard]] std::string describe(const AlreadyDone& outcome);
[[nodiscard]] std::string describe(const Claimable& outcome);
[[nodiscard]] std::string describe(const Completed& outcome);
[[nodiscard]] std::string describe(const Lost& outcome);
[[nodiscard]] std::string describe(const Conflict& outcome);
[[nodiscard]] std::string describe(const NotProcessing& outcome);
[[nodiscard]] std::string describe(const Gone& outcome);
[[nodiscard]] std::string describe(const FailRecorded& outcome);
[[nodiscard]] std::string describe(const Renewed& outcome);
[[nodiscard]] std::string describe(const RenewRefused& outcome);
[[nodiscard]] std::string describe(const Released& outcome);
[[nodiscard]] std::string describe(const Executed& outcome);
[[nodiscard]] std::string describe(const ActionFailed& outcome);
[[nodiscard]] std::string describe(const Swept& swept);
[[nodiscard]] std::string describe(const Record& record);
[[nodiscard]] std::string describe(const Found& found);
[[nodiscard]] std::string describe(const Answer& answer);
[[nodiscard]] std::string describe(const StoreStats& stats);
[[nodiscard]] std::string describe(const Page& page);
[[nodiscard]] std::string describe(const Error& error);
[[nodiscard]] std::string describe(const Key& key);

template <class... Alternatives>
[[nodiscard]] std::string describe(const std::variant<Alternatives...>& outcome) {
  return std::visit([](const auto& alternative) { return describe(alternative); }, outcome);
}

[[nodiscard]] inline std::string describe(const std::optional<Found>& found) {
  return found ? describe(*found) : "absent";
}

template <class T>
[[nodiscard]] std::string describe(const result<T>& answer) {
  if (answer.has_error()) return describe(answer.error());
  if constexpr (std::is_void_v<T>) {
    return "done";
  } else {
    return describe(*answer);
  }
}

// What PrintTo is for: exactly the types above, nothing that merely converts to one of them.
template <class T>
concept Described =
    std::same_as<T, Token> || std::same_as<T, Claimed> || std::same_as<T, InProgress> ||
    std::same_as<T, Replay> || std::same_as<T, Mismatch> || std::same_as<T, Backoff> ||
    std::same_as<T, Failed> || std::same_as<T, Exhausted> || std::same_as<T, InDoubt> ||
    std::same_as<T, AlreadyDone> || std::same_as<T, Claimable> || std::same_as<T, Completed> ||
    std::same_as<T, Lost> || std::same_as<T, Conflict> || std::same_as<T, NotProcessing> ||
    std::same_as<T, Gone> || std::same_as<T, FailRecorded> || std::same_as<T, Renewed> ||
    std::same_as<T, RenewRefused> || std::same_as<T, Released> || std::same_as<T, Executed> ||
    std::same_as<T, ActionFailed> || std::same_as<T, Swept> || std::same_as<T, Record> ||
    std::same_as<T, Found> || std::same_as<T, Answer> || std::same_as<T, StoreStats> ||
    std::same_as<T, Page> || std::same_as<T, Error> || std::same_as<T, Key>;

}  // namespace idem::testing

namespace idem {

// Found by GoogleTest through the arguments' namespace.
template <testing::Described T>
void PrintTo(const T& value, std::ostream* out) {
  *out << testing::describe(value);
}
template <class T>
void PrintTo(const boost::system::result<T, Error>& value, std::ostream* out) {
  *out << testing::describe(value);
}

}  // namespace idem
