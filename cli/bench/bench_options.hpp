// What can be said about a measurement on the command line.
#pragma once

#include "load/session.hpp"
#include "options.hpp"

namespace idem::cli {

struct BenchOptions {
  std::vector<std::string> stores;
  std::vector<std::string> clients;
  std::string keys = "unique";
  std::string duplicates = "10%";
  std::string crashes = "0%";
  std::string max_errors = "1%";
  std::string callers = "blocking";
  std::optional<std::uint64_t> payload;
  std::optional<std::uint64_t> rate;
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> operations;
  std::optional<std::uint64_t> seed;
  std::optional<Duration> time;
  std::optional<Duration> work;
  std::optional<Duration> lease;
  std::optional<Duration> max_wait;
  std::string out;
  bool quick = false;
  bool strict = false;
};

// --stores, for bench_subjects(): `what` they are to the command, `usual` if none is named.
void add_stores(CLI::App* app, std::vector<std::string>& into,
                const std::string& what = "what to measure",
                const std::string& usual = "a private store of every backend");

void add_bench_options(CLI::App* app, BenchOptions& into);

// With round_time fitted to the budget. Throws Failure (usage).
[[nodiscard]] bench::SessionOptions session_options(const BenchOptions& options,
                                                    std::size_t subjects);

// Without repetitions. Throws Failure (usage).
[[nodiscard]] std::vector<std::uint32_t> parse_clients(const std::vector<std::string>& texts);

// `usual` if there is none; 1 to `most`. Throws Failure (usage).
[[nodiscard]] std::uint32_t narrow(const char* option, std::optional<std::uint64_t> value,
                                   std::uint32_t usual, std::uint32_t most);

// "5%" or "0.05" -> 0.05. Throws Failure naming `option`.
[[nodiscard]] double parse_share(const std::string& option, const std::string& text);

// The stores named, or a private one of every backend: "sqlite" (private), "sqlite/memory"
// (private, another variant), or a URL. Nothing is opened yet. Throws Failure (usage).
[[nodiscard]] std::vector<bench::Subject> bench_subjects(const std::vector<std::string>& named);

}  // namespace idem::cli
