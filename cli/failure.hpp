// What a person is told when a command cannot do its work: what happened, about what, what to do.
//
//   error: no such directory: /srv/orders
//     from: --store sqlite:////srv/orders/idem.db
//     try:  mkdir -p /srv/orders
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "exit_code.hpp"

namespace idem::cli {

// Thrown inside the command line only; main prints it. Holds no password.
class Failure : public std::exception {
 public:
  Failure(ExitCode exit, std::string code, std::string message)
      : exit_(exit), code_(std::move(code)), message_(std::move(message)) {}
  // The code's exit status and its general advice.
  explicit Failure(const Error& error);
  [[nodiscard]] static Failure usage(std::string message) {
    return {ExitCode::usage, "usage", std::move(message)};
  }

  Failure&& from(std::string where) && {
    from_ = std::move(where);
    return std::move(*this);
  }
  Failure&& advise(std::string what) && {
    advice_.insert(advice_.begin(), std::move(what));
    return std::move(*this);
  }

  // The message names its places itself, a line each: it is printed as it is.
  Failure&& plain() && {
    plain_ = true;
    return std::move(*this);
  }

  [[nodiscard]] ExitCode exit() const { return exit_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

  // To standard error as above; with `json` as one document to standard output.
  void print(bool json) const;

 private:
  ExitCode exit_;
  std::string code_;  // a word for programs: "usage", "unavailable" ...
  std::string message_;
  std::string from_;
  std::vector<std::string> advice_;
  bool plain_ = false;
};

// To standard error, for a person. If it cannot be written nothing else changes: a full log disk
// stops no job and hides no exit status.
void tell_user(const std::string& text);

// The value, or a Failure about `from`.
template <class T>
T must(result<T> value, const std::string& from = {}) {
  if (!value) throw Failure(value.error()).from(from);
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

}  // namespace idem::cli
