#include "exit_code.hpp"

namespace idem::cli {

namespace {

struct CodeOf {
  ExitCode operator()(const Claimed&) const { return ExitCode::done; }
  ExitCode operator()(const InProgress&) const { return ExitCode::in_progress; }
  ExitCode operator()(const Replay&) const { return ExitCode::replay; }
  ExitCode operator()(const AlreadyDone&) const { return ExitCode::replay; }
  ExitCode operator()(const Mismatch&) const { return ExitCode::mismatch; }
  ExitCode operator()(const Backoff&) const { return ExitCode::backoff; }
  ExitCode operator()(const Failed&) const { return ExitCode::failed_before; }
  ExitCode operator()(const Exhausted&) const { return ExitCode::exhausted; }
  ExitCode operator()(const InDoubt&) const { return ExitCode::in_doubt; }

  ExitCode operator()(const Completed&) const { return ExitCode::done; }
  ExitCode operator()(const FailRecorded&) const { return ExitCode::done; }
  ExitCode operator()(const Renewed&) const { return ExitCode::done; }
  ExitCode operator()(const Released&) const { return ExitCode::done; }
  ExitCode operator()(const Lost&) const { return ExitCode::lost; }
  ExitCode operator()(const Conflict&) const { return ExitCode::check_failed; }
  ExitCode operator()(const NotProcessing&) const { return ExitCode::check_failed; }
  ExitCode operator()(const RenewRefused&) const { return ExitCode::refused; }
  ExitCode operator()(const Gone&) const { return ExitCode::not_found; }
};

}  // namespace

ExitCode exit_code(errc code) {
  switch (code) {
    case errc::invalid_argument:
    case errc::too_large:
    case errc::unsupported:
      return ExitCode::usage;
    case errc::stale_fence:
      return ExitCode::refused;
    case errc::shutting_down:
    case errc::cancelled:
      return ExitCode::interrupted;
    case errc::unknown:
    case errc::unavailable:
    case errc::busy:
    case errc::capacity:
    case errc::read_only:
    case errc::cannot_open:
    case errc::denied:
    case errc::corrupt:
    case errc::wrong_process:
    case errc::internal:
      break;
  }
  return ExitCode::unreachable;
}

ExitCode exit_code(const ClaimOutcome& outcome) { return std::visit(CodeOf{}, outcome); }
ExitCode exit_code(const CompleteOutcome& outcome) { return std::visit(CodeOf{}, outcome); }
ExitCode exit_code(const FailOutcome& outcome) { return std::visit(CodeOf{}, outcome); }
ExitCode exit_code(const RenewOutcome& outcome) { return std::visit(CodeOf{}, outcome); }
ExitCode exit_code(const ReleaseOutcome& outcome) { return std::visit(CodeOf{}, outcome); }

}  // namespace idem::cli
