// What broke: error codes, the error value, and the result type of every call.
//
// An outcome that a correct caller must handle (Replay, InProgress, Lost ...) is not an error; see
// outcome.hpp. No exception crosses the library's interface, except the one thrown by the caller's
// own action inside execute().
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace idem {

enum class errc {
  invalid_argument = 1,  // the call itself is wrong; nothing was sent
  too_large,             // a result over max_result_bytes; nothing was sent
  unknown,               // may have been applied: repeat with the same owner
  unavailable,           // surely not applied: the store was not reached or refused to serve
  busy,                  // surely not applied: another writer held the store for too long
  capacity,              // surely not applied: the store is full and evicts nothing live
  read_only,             // the store takes no writes
  cannot_open,           // no store there, or not one of ours
  denied,                // wrong password or a missing right
  corrupt,               // what the store holds cannot be trusted
  wrong_process,         // a forked child used its parent's store
  shutting_down,         // shutdown() was called
  cancelled,             // surely not applied: the caller cancelled it before it was sent
  stale_fence,           // an administrator's fence is not the record's any more
  unsupported,           // this store cannot do that
  internal,              // a broken invariant: please report it
};

// The word of the code as in SEMANTICS: "unknown", "unavailable" ... Never fails.
[[nodiscard]] std::string_view to_string(errc code) noexcept;

[[nodiscard]] const boost::system::error_category& category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(errc code) noexcept;

// A code and one sentence for a person: what happened, where, and what to do. Holds no password.
struct Error {
  errc code{};
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

// What result<T>::value() throws when the result is an Error.
class Exception : public std::runtime_error {
 public:
  explicit Exception(const Error& error);
  [[nodiscard]] errc code() const noexcept { return code_; }

 private:
  errc code_;
};

[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

// A value or an Error.
template <class T>
using result = boost::system::result<T, Error>;

[[nodiscard]] inline Error fail(errc code, std::string message) {
  return Error{code, std::move(message)};
}

}  // namespace idem

template <>
struct boost::system::is_error_code_enum<idem::errc> : std::true_type {};
