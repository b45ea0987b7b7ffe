// What every measurement of `idem bench` begins and ends with: its document and the files of --out.
#pragma once

#include <string>

#include "context.hpp"

namespace idem::cli {

// What was typed, passwords hidden.
[[nodiscard]] std::string command_text();
// Now, UTC, ISO 8601.
[[nodiscard]] std::string started_text();

// A document of idem.bench/1 with its header: version, command, machine, and what makes it
// doubtful.
[[nodiscard]] Json new_document(const std::string& kind);

// A line for a person, on standard error, broken to the terminal's width.
void tell(const std::string& text);

// Before a measurement: makes `dir` if need be, "" is none. Throws Failure if it cannot be written.
void check_out(const std::string& dir);

// Writes results.json, report.html, report.md and report.csv into `dir`, which check_out() made;
// tells the path of the page on standard error. Throws Failure.
void save_report(const std::string& dir, const Json& document);

// To standard output: the page as text, or with --json the document.
void print_report(const Context& context, const Json& document);

// The end of a measurement: both, the files only if `dir` is not empty.
void deliver(const Context& context, const Json& document, const std::string& dir);

}  // namespace idem::cli
