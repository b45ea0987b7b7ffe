// Writers killed at random instants of a transaction: business and record are there together, or
// neither is, and no key is paid twice. IDEM_NIGHTLY=1: 200 kills of each writer instead of 30.
#include <fstream>
#include <random>
#include <sstream>

#include "caller.hpp"
#include "idem/mysql_transaction.hpp"

namespace idem::mysql_test {
namespace {

class MysqlCrash : public EachLayout {};
IDEM_EACH_LAYOUT(MysqlCrash);

std::unique_ptr<testing::ServerProcess> payer(const std::string& database, std::string log,
                                              int first) {
  testing::ServerCommand command;
  command.argv = {IDEM_MYSQL_PAYER, server().socket(), database, std::to_string(first)};
  command.directory = "/";
  command.log = std::move(log);
  command.ready = [file = command.log] {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str().find("ready") != std::string::npos;
  };
  auto process = testing::ServerProcess::launch(std::move(command));
  if (!process) throw std::runtime_error(process.error().message);
  return std::move(*process);
}

TEST_P(MysqlCrash, AKilledWriterLeavesBusinessAndRecordOrNeither) {
  (void)open(options());
  Raw raw(database().name());
  raw.run("CREATE TABLE payment (name VARCHAR(64), note VARCHAR(64)) ENGINE=InnoDB");
  auto logs = testing::TempDirectory::make("payers");
  ASSERT_TRUE(logs) << logs.error().message;
  const int kills = nightly() ? 200 : 30;
  std::minstd_rand random(11);
  for (int i = 0; i < kills; ++i) {
    // Two writers want the same keys; the next two begin among those which these left undone.
    const auto a = payer(database().name(), *logs / ("a" + std::to_string(i)), i * 5);
    const auto b = payer(database().name(), *logs / ("b" + std::to_string(i)), i * 5);
    system_clock().pause(Micros(random() % 20'000));
    a->kill();
    system_clock().pause(Micros(random() % 5'000));
    b->kill();
  }
  // Who was killed in a transaction is rolled back as soon as the server notices.
  EXPECT_TRUE(comes_true([&] {
    return raw.cell("SELECT COUNT(*) FROM information_schema.processlist WHERE db = '" +
                    database().name() + "'") == "1";
  }));
  const std::string paid = raw.cell("SELECT COUNT(*) FROM payment");
  EXPECT_EQ(raw.cell("SELECT COUNT(DISTINCT name) FROM payment"), paid) << "each key once";
  EXPECT_EQ(raw.cell("SELECT COUNT(*) FROM idempotent_record WHERE status = 1"), paid);
  EXPECT_EQ(raw.cell("SELECT COUNT(*) FROM idempotent_record"), paid) << "no claim alone";
  EXPECT_EQ(raw.cell("SELECT COUNT(*) FROM payment JOIN idempotent_record ON idem_key = name"),
            paid);
  EXPECT_GT(std::stoi(paid), kills);
  std::printf("killed: 2 x %d, paid: %s\n", kills, paid.c_str());
}

}  // namespace
}  // namespace idem::mysql_test
