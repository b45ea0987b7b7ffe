// Outcomes as JSON and as text. The text is made from the JSON, so both say the same.
//
// Times are lengths in milliseconds ("lease_left_ms"), never instants: answers are alike on every
// store and clock. Bytes that are not UTF-8 are told as hexadecimal under NAME_hex.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "idem/service.hpp"
#include "idem/state_machine.hpp"

namespace idem::cli {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json to_json(const ClaimOutcome& outcome);
[[nodiscard]] Json to_json(const CompleteOutcome& outcome);
[[nodiscard]] Json to_json(const FailOutcome& outcome);
[[nodiscard]] Json to_json(const RenewOutcome& outcome);
[[nodiscard]] Json to_json(const ReleaseOutcome& outcome);
[[nodiscard]] Json to_json(const Error& error);
[[nodiscard]] Json record_to_json(const Record& record, Time now);

// document[name] = bytes, or document[name_hex] if they are not UTF-8.
void put_bytes(Json& document, const std::string& name, std::string_view bytes);
[[nodiscard]] std::string to_hex(std::string_view bytes);
[[nodiscard]] result<std::string> from_hex(std::string_view hex);

// For a terminal: control characters (C0, DEL, C1) and what reorders text (bidi) as \n, \t, \u{1b}.
// Stored bytes are somebody else's: raw, they could rewrite what a person reads.
[[nodiscard]] std::string printable(std::string_view utf8);

// Whole milliseconds: what is left is rounded down, what is to be waited for up.
[[nodiscard]] std::int64_t ms_left(Micros d);
[[nodiscard]] std::int64_t ms_to_wait(Micros d);
// "2m 5s", "850ms": for people, at most two units.
[[nodiscard]] std::string human(Micros d);

// The document with its schema in front, on one line of standard output.
void print_document(const Json& document);
// An outcome for a person: its word and `subject`, then one aligned line per member.
[[nodiscard]] std::string to_text(const Json& answer, std::string_view subject);

}  // namespace idem::cli
