#include "connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "idem/clock.hpp"
#include "reply_error.hpp"
#include "transport.hpp"

namespace idem::redis {

namespace {

constexpr std::size_t kWriteBytesMax = std::size_t{1} << 20;  // of one write, a giant excepted
// Under way at once: the server works on one while the other is made or read. The second one goes
// out before the first is answered only if it is worth its packets.
constexpr std::size_t kWritesMax = 2;
constexpr std::size_t kSecondBytesMin = std::size_t{4} << 10;
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

Connection::Connection(Loop& loop, boost::asio::ssl::context* tls, RedisOptions options)
    : loop_(loop),
      io_(loop.io()),
      tls_(tls),
      options_(std::move(options)),
      name_(name_of(options_)),
      connect_timer_(io_),
      watch_timer_(io_),
      random_(std::random_device{}()) {}

Connection::~Connection() = default;

template <class Work>
void Connection::locked(const std::shared_ptr<Session>& session, Work work) {
  Lock lock(mutex_);
  if (session == session_) work();
  wake(lock);
}

void Connection::wake(Lock& lock) {
  const auto ended = std::exchange(ended_, {});
  lock.unlock();
  Ringing ringing;
  for (const Ended& one : ended) one.exchange->finish(one.error, ringing);
}

void Connection::submit(ExchangePtr exchange) {
  Lock lock(mutex_);
  exchange->leaves_with(loop_.next_write());
  if (rides(exchange)) return;
  queued_bytes_ += exchange->payload().size();
  queue_.push_back(std::move(exchange));
  if (state_ != State::ready || closing_) {
    kick_later();
  } else if (may_write() && (!in_flight_.empty() || !session_->transport->hung_up())) {
    // Else it goes out with a reply, or on the next connection: the reading finds the end of this
    // one.
    watch();
    write();
  }
  wake(lock);
}

// Whether a claim of the same key, which is not sent yet, takes it along; else it takes others.
bool Connection::rides(const ExchangePtr& exchange) {
  const std::string_view key = exchange->claimed_key();
  if (key.empty()) return false;
  Exchange*& there = claims_[std::hash<std::string_view>()(key) % claims_.size()];
  if (there != nullptr && there->claimed_key() == key && !there->withdrawn()) {
    there->take_along(exchange);
    return true;
  }
  there = exchange.get();
  return false;
}

void Connection::submit_close() {
  const std::lock_guard guard(mutex_);
  closing_ = true;
  boost::asio::post(io_, [self = shared_from_this()] {
    Lock lock(self->mutex_);
    self->closing_ = false;
    if (self->session_) self->lost(idem::fail(errc::unavailable, "closed by this side"));
    self->wake(lock);
  });
}

void Connection::submit_review() {
  boost::asio::post(io_, [self = shared_from_this()] {
    Lock lock(self->mutex_);
    if (self->state_ != State::ready || self->in_flight_.empty()) return;
    const auto abandoned = [](const auto& all) {
      return std::all_of(all.begin(), all.end(),
                         [](const ExchangePtr& one) { return one == nullptr || one->abandoned(); });
    };
    std::vector<ExchangePtr> sent;
    for (const Due& due : self->in_flight_) sent.push_back(due.exchange);
    if (abandoned(sent) && abandoned(self->timeless_) && abandoned(self->unconfirmed_)) {
      self->lost(idem::fail(errc::unavailable, "the server does not answer in time"));
    }
    self->wake(lock);
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

void Connection::kick_later() {
  if (std::exchange(kick_posted_, true)) return;
  boost::asio::post(io_, [self = shared_from_this()] {
    Lock lock(self->mutex_);
    self->kick_posted_ = false;
    self->kick();
    self->wake(lock);
  });
}

void Connection::kick() {
  if (queue_.empty()) return;
  watch();
  if (may_write()) write();
  if (state_ == State::down) connect();
  if (state_ == State::pausing) {
    if (const Error why = trouble(); why.code == errc::denied) refuse_all(why);
  }
}

// A wrong password does not get better by waiting.
void Connection::refuse_all(const Error& why) {
  claims_.fill(nullptr);
  for (ExchangePtr& refused : std::exchange(queue_, {})) end(std::move(refused), why);
  queued_bytes_ = 0;
}

void Connection::end(ExchangePtr exchange, Error error) {
  ended_.push_back({std::move(exchange), std::move(error)});
}

void Connection::connect() {
  attempts_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  state_ = State::connecting;
  session_ = std::make_shared<Session>();
  session_->transport = std::make_shared<Transport>(io_, tls_);
  connect_timer_.expires_after(options_.connect_timeout.micros());
  connect_timer_.async_wait([self = shared_from_this(), session = session_](auto error) {
    if (error) return;
    self->locked(session, [&] {
      if (self->state_ == State::ready) return;  // late: nobody ran the loop meanwhile
      self->lost(idem::fail(errc::unavailable, "no connection within the connect_timeout"));
    });
  });
  session_->transport->open(options_, [self = shared_from_this(), session = session_](auto error) {
    self->locked(session, [&] {
      if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
      self->greet();
    });
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
  auto nobody = std::make_shared<Gathering>(1);
  hello_ = std::make_shared<Exchange>(std::move(nobody), std::move(payload), commands);
  in_flight_.push_back({hello_, false, true});
  ++writes_;
  session_->out = hello_->payload();
  send_out();
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

bool Connection::may_write() const {
  if (state_ != State::ready || closing_ || writing_ || queue_.empty()) return false;
  return writes_ == 0 || (writes_ < kWritesMax && queued_bytes_ >= kSecondBytesMin);
}

void Connection::write() {
  std::string& out = session_->out;
  out.clear();
  claims_.fill(nullptr);
  bool time = false;
  Behind copies;
  while (!queue_.empty() && out.size() < kWriteBytesMax) {
    ExchangePtr exchange = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= exchange->payload().size();
    while (exchange && !exchange->send()) exchange = exchange->heir();
    if (!exchange) continue;
    const Behind& wanted = exchange->behind();
    if (time && !wanted.time) ask_behind(std::exchange(time, false), {});
    time = wanted.time;
    if (wanted.copies != 0) {
      const bool first = copies.copies == 0;
      copies.copies_limit =
          first ? wanted.copies_limit : std::min(copies.copies_limit, wanted.copies_limit);
      copies.copies = wanted.copies;
    }
    out += exchange->payload();
    in_flight_.push_back({std::move(exchange)});
  }
  if (out.empty()) return;
  ask_behind(time, copies);
  in_flight_.back().last = true;
  ++writes_;
  loop_.has_written();
  send_out();
}

void Connection::ask_behind(bool time, const Behind& copies) {
  if (time) {
    append_command(session_->out, {"TIME"});
    in_flight_.push_back({nullptr, false});
  }
  if (copies.copies != 0) {
    const auto ms = std::max<std::int64_t>(1, copies.copies_limit.count() / 1000);
    append_command(session_->out, {"WAIT", std::to_string(copies.copies), std::to_string(ms)});
    in_flight_.push_back({nullptr, true});
  }
}

// At once, if the line takes it all; else whoever runs the loop writes the rest.
void Connection::send_out() {
  const std::size_t sent = session_->transport->write_now(session_->out);
  if (sent == session_->out.size()) return;
  writing_ = true;
  boost::asio::post(io_, [self = shared_from_this(), session = session_, sent] {
    self->locked(session, [&] {
      const std::string_view rest = std::string_view(session->out).substr(sent);
      session->transport->write_all(rest, [self, session](auto error, std::size_t) {
        self->locked(session, [&] {
          self->writing_ = false;
          if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
          self->kick();
        });
      });
    });
  });
}

void Connection::read() {
  session_->transport->read_some(
      session_->reader.prepare(),
      [self = shared_from_this(), session = session_](auto error, std::size_t bytes) {
        self->locked(session, [&] {
          if (error) return self->lost(idem::fail(errc::unavailable, error.message()));
          self->heard_ = true;
          session->reader.commit(bytes);
          self->take_replies();
          if (session != self->session_) return;
          self->kick();
          self->read();
        });
      });
}

void Connection::take_replies() {
  const auto session = session_;
  while (session == session_) {
    auto reply = session->reader.next();
    if (!reply) return lost(reply.error());
    if (!*reply) return;
    if (in_flight_.empty()) {  // a reply to no question: what follows could not be trusted
      return lost(idem::fail(errc::unavailable, "the server spoke unasked: " + (*reply)->text));
    }
    take_reply(std::move(**reply));
  }
}

void Connection::take_reply(Reply&& reply) {
  Due& due = in_flight_.front();
  if (due.exchange && !due.exchange->take(std::move(reply))) return;
  const Due answered = std::move(due);
  in_flight_.pop_front();
  if (answered.last) --writes_;
  const ExchangePtr& exchange = answered.exchange;
  if (exchange && exchange == hello_) return take_greeting();
  session_->served = true;
  const auto with_time = [&](const ExchangePtr& one) {
    if (one->behind().copies != 0) {
      unconfirmed_.push_back(one);
    } else {
      end(one);
    }
  };
  if (exchange && exchange->behind().time) {
    timeless_.push_back(exchange);
  } else if (exchange) {
    with_time(exchange);
  } else if (!answered.copies) {
    const Time told = told_time(reply);
    if (told != Time{}) time_.hear(told, system_clock().now());
    for (const ExchangePtr& one : timeless_) {
      one->take_time(told);
      with_time(one);
    }
    timeless_.clear();
  } else {
    for (const ExchangePtr& one : unconfirmed_) {
      one->take_copies(reply.type == Reply::Type::integer ? reply.integer : 0);
      end(one);
    }
    unconfirmed_.clear();
  }
}

void Connection::lost(Error why) {
  const bool served = session_->served;
  session_->transport->close();
  session_ = nullptr;
  hello_ = nullptr;
  writing_ = closing_ = false;
  writes_ = 0;
  connect_timer_.cancel();
  why.message = name_ + ": " + why.message;
  {
    const std::lock_guard guard(told_mutex_);
    trouble_ = why;
  }
  const Error orphaned =
      idem::fail(errc::unknown, "connection lost before the reply: " + why.message);
  for (std::vector<ExchangePtr>* waiting : {&timeless_, &unconfirmed_}) {
    for (ExchangePtr& orphan : std::exchange(*waiting, {})) end(std::move(orphan), orphaned);
  }
  for (Due& due : std::exchange(in_flight_, {})) {
    if (due.exchange) end(std::move(due.exchange), orphaned);
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
    Lock lock(self->mutex_);
    self->state_ = State::down;
    self->kick();
    self->wake(lock);
  });
}

// Looks at intervals, while anybody waits for anything.
void Connection::watch() {
  if (std::exchange(watching_, true)) return;
  watch_timer_.expires_after(std::max(kWatchMin, options_.timeout.micros() * 2));
  watch_timer_.async_wait([self = shared_from_this()](auto error) {
    if (error) return;
    Lock lock(self->mutex_);
    self->watching_ = false;
    self->look();
    self->wake(lock);
  });
}

void Connection::look() {
  claims_.fill(nullptr);
  for (ExchangePtr& exchange : queue_) {
    if (!exchange->withdrawn()) continue;
    queued_bytes_ -= exchange->payload().size();
    exchange = exchange->heir();
    if (exchange) queued_bytes_ += exchange->payload().size();
  }
  std::erase(queue_, nullptr);
  const bool heard = std::exchange(heard_, false);
  const Exchange* const due = in_flight_.empty() ? nullptr : in_flight_.front().exchange.get();
  if (due != nullptr && due == due_before_ && !heard && state_ == State::ready) {
    lost(idem::fail(errc::unavailable, "the server does not answer"));
  }
  due_before_ = due;
  if (!queue_.empty() || !in_flight_.empty()) watch();
}

}  // namespace idem::redis
