#include "connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "reply_error.hpp"
#include "transport.hpp"

namespace idem::redis {

namespace {

constexpr std::size_t kWriteBytesMax = std::size_t{1} << 20;  // of one write, a giant excepted
constexpr Micros kPauseMin = std::chrono::milliseconds(20);
constexpr Micros kPauseMax = std::chrono::milliseconds(500);
// A password is not guessed: at most three tries in five seconds.
constexpr Micros kPauseDenied = std::chrono::milliseconds(2500);
constexpr Micros kWatchMin = std::chrono::milliseconds(500);

std::string name_of(const RedisOptions& options) {
  if (!options.socket.empty()) return options.socket;
  return options.host + ":" + std::to_string(options.port);
}

}  // namespace

struct Connection::Session {
  std::shared_ptr<Transport> transport;
  ReplyReader reader;
  std::string out;      // what is being written
  bool served = false;  // a reply came, the handshake's not counted
};

Connection::Connection(boost::asio::io_context& io, boost::asio::ssl::context* tls,
                       RedisOptions options)
    : io_(io),
      tls_(tls),
      options_(std::move(options)),
      name_(name_of(options_)),
      connect_timer_(io),
      watch_timer_(io),
      random_(std::random_device{}()) {}

Connection::~Connection() = default;

void Connection::submit(ExchangePtr exchange) {
  const std::lock_guard guard(inbox_mutex_);
  inbox_.push_back(std::move(exchange));
  if (std::exchange(drain_posted_, true)) return;
  boost::asio::post(io_, [self = shared_from_this()] { self->drain(); });
}

void Connection::submit_close() {
  boost::asio::post(io_, [self = shared_from_this()] {
    if (self->session_) self->lost(idem::fail(errc::unavailable, "closed by this side"));
  });
}

void Connection::submit_review() {
  boost::asio::post(io_, [self = shared_from_this()] {
    if (self->state_ != State::ready || self->in_flight_.empty()) return;
    const auto abandoned = [](const ExchangePtr& exchange) { return exchange->abandoned(); };
    if (std::all_of(self->in_flight_.begin(), self->in_flight_.end(), abandoned)) {
      self->lost(idem::fail(errc::unavailable, "the server does not answer in time"));
    }
  });
}

Error Connection::trouble() const {
  const std::lock_guard guard(told_mutex_);
  return trouble_;
}

ServerGreeting Connection::greeting() const {
  const std::lock_guard guard(told_mutex_);
  return greeting_;
}

// relaxed: a statistic
std::uint64_t Connection::attempts() const { return attempts_.load(std::memory_order_relaxed); }

void Connection::drain() {
  {
    const std::lock_guard guard(inbox_mutex_);
    drain_posted_ = false;
    std::move(inbox_.begin(), inbox_.end(), std::back_inserter(queue_));
    inbox_.clear();
  }
  kick();
}

void Connection::kick() {
  if (queue_.empty()) return;
  watch();
  if (state_ == State::ready) write();
  if (state_ == State::down) connect();
  if (state_ == State::pausing) {
    if (const Error why = trouble(); why.code == errc::denied) refuse_all(why);
  }
}

// A wrong password does not get better by waiting.
void Connection::refuse_all(const Error& why) {
  for (const ExchangePtr& refused : std::exchange(queue_, {})) refused->finish(why);
}

void Connection::connect() {
  attempts_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  state_ = State::connecting;
  session_ = std::make_shared<Session>();
  session_->transport = std::make_shared<Transport>(io_, tls_);
  connect_timer_.expires_after(options_.connect_timeout.micros());
  connect_timer_.async_wait([self = shared_from_this(), session = session_](auto error) {
    if (error || session != self->session_) return;
    self->lost(idem::fail(errc::unavailable, "no connection within the connect_timeout"));
  });
  session_->transport->open(options_, [self = shared_from_this(), session = session_](auto error) {
    if (session != self->session_) return;
    if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
    self->greet();
  });
}

void Connection::greet() {
  state_ = State::greeting;
  std::string payload;
  std::size_t commands = 1;
  if (options_.password.empty()) {
    append_command(payload, {"HELLO", "2", "SETNAME", "idem"});
  } else {
    const std::string& user = options_.user.empty() ? "default" : options_.user;
    append_command(payload, {"HELLO", "2", "AUTH", user, options_.password, "SETNAME", "idem"});
  }
  if (options_.database != 0) {
    append_command(payload, {"SELECT", std::to_string(options_.database)});
    ++commands;
  }
  auto nobody = std::make_shared<Gathering>();
  nobody->pending = 1;
  hello_ = std::make_shared<Exchange>(std::move(nobody), std::move(payload), commands);
  in_flight_.push_back(hello_);
  session_->out = hello_->payload();
  writing_ = true;
  session_->transport->write_all(
      session_->out, [self = shared_from_this(), session = session_](auto error, std::size_t) {
        if (session != self->session_) return;
        self->writing_ = false;
        if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
        if (self->state_ == State::ready) self->kick();
      });
  read();
}

void Connection::take_greeting() {
  for (const Reply& reply : hello_->replies()) {
    if (!reply.is_error()) continue;
    return lost(classify(reply.text).error);
  }
  {
    const std::lock_guard guard(told_mutex_);
    const Reply& hello = hello_->replies().front();
    greeting_ = {};
    for (std::size_t i = 0; i + 1 < hello.elements.size(); i += 2) {
      const std::string& field = hello.elements[i].text;
      const std::string& value = hello.elements[i + 1].text;
      if (field == "version") greeting_.version = value;
      if (field == "role") greeting_.role = value;
      if (field == "mode") greeting_.mode = value;
    }
    trouble_ = {};
  }
  hello_ = nullptr;
  failed_tries_ = 0;
  connect_timer_.cancel();
  state_ = State::ready;
  kick();
}

void Connection::write() {
  if (writing_ || !in_flight_.empty()) return;
  session_->out.clear();
  while (!queue_.empty() && session_->out.size() < kWriteBytesMax) {
    const ExchangePtr exchange = std::move(queue_.front());
    queue_.pop_front();
    if (!exchange->send()) {
      exchange->finish(idem::fail(errc::unavailable, "withdrawn"));
      continue;
    }
    session_->out += exchange->payload();
    in_flight_.push_back(exchange);
  }
  if (session_->out.empty()) return;
  writing_ = true;
  session_->transport->write_all(
      session_->out, [self = shared_from_this(), session = session_](auto error, std::size_t) {
        if (session != self->session_) return;
        self->writing_ = false;
        if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
        self->kick();
      });
}

void Connection::read() {
  session_->transport->read_some(
      session_->reader.prepare(),
      [self = shared_from_this(), session = session_](auto error, std::size_t bytes) {
        if (session != self->session_) return;
        if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
        self->heard_ = true;
        session->reader.commit(bytes);
        if (!self->take_replies()) return;
        self->read();
        if (self->in_flight_.empty()) self->kick();
      });
}

// False: the session is over.
bool Connection::take_replies() {
  const auto session = session_;
  for (;;) {
    auto reply = session->reader.next();
    if (!reply) {
      lost(reply.error());
      return false;
    }
    if (!*reply) return true;
    if (in_flight_.empty()) {  // a reply to no question: what follows could not be trusted
      lost(idem::fail(errc::unavailable, "the server spoke unasked: " + (*reply)->text));
      return false;
    }
    const ExchangePtr first = in_flight_.front();
    if (!first->take(std::move(**reply))) continue;
    in_flight_.pop_front();
    if (first == hello_) {
      take_greeting();
    } else {
      session->served = true;
      first->finish();
    }
    if (session != session_) return false;
  }
}

void Connection::lost(Error why) {
  const bool served = session_->served;
  session_->transport->close();
  session_ = nullptr;
  hello_ = nullptr;
  writing_ = false;
  connect_timer_.cancel();
  why.message = name_ + ": " + why.message;
  {
    const std::lock_guard guard(told_mutex_);
    trouble_ = why;
  }
  auto orphans = std::exchange(in_flight_, {});
  for (const ExchangePtr& orphan : orphans) {
    orphan->finish(idem::fail(errc::unknown, "connection lost before the reply: " + why.message));
  }
  if (why.code == errc::denied) refuse_all(why);
  state_ = State::down;
  if (served) {
    kick();
  } else {
    ++failed_tries_;
    pause_before_next_try();
  }
}

void Connection::pause_before_next_try() {
  state_ = State::pausing;
  const bool denied = trouble().code == errc::denied;
  const Micros longest =
      denied ? kPauseDenied
             : std::min(kPauseMax, kPauseMin * (1 << std::min(failed_tries_ - 1, 10)));
  const auto part = std::uniform_int_distribution<std::int64_t>(700, 1000)(random_);
  connect_timer_.expires_after(longest * part / 1000);
  connect_timer_.async_wait([self = shared_from_this()](auto error) {
    if (error) return;
    self->state_ = State::down;
    self->kick();
  });
}

// Looks at intervals, while anybody waits for anything.
void Connection::watch() {
  if (std::exchange(watching_, true)) return;
  watch_timer_.expires_after(std::max(kWatchMin, options_.timeout.micros() * 2));
  watch_timer_.async_wait([self = shared_from_this()](auto error) {
    if (error) return;
    self->watching_ = false;
    self->look();
  });
}

void Connection::look() {
  std::erase_if(queue_, [](const ExchangePtr& exchange) { return exchange->withdrawn(); });
  const bool heard = std::exchange(heard_, false);
  const Exchange* const due = in_flight_.empty() ? nullptr : in_flight_.front().get();
  if (due != nullptr && due == due_before_ && !heard && state_ == State::ready) {
    lost(idem::fail(errc::unavailable, "the server does not answer"));
  }
  due_before_ = due;
  if (!queue_.empty() || !in_flight_.empty()) watch();
}

}  // namespace idem::redis
