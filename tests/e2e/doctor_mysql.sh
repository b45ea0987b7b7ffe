#!/usr/bin/env bash
# A wrongly set MySQL server, or a table that is not as it must be: each is named, with what to do.
# shellcheck source=tests/e2e/lib.sh
services=$(realpath "$(dirname "$0")/../../scripts/services")
here=$(realpath "$(dirname "$0")")
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/doctor_lib.sh
. "$here/doctor_lib.sh"
idem stores | grep -q mysql || exit 77
export IDEM_SERVICES_DIR=$work/s
trap '"$services" down >/dev/null || true; clean_up' EXIT

expect_exit 0 "$services" up mariadb
mysql=$(cut -d' ' -f2 out)
port_of_mysql=${mysql##*:} port_of_mysql=${port_of_mysql%%/*}
as_root=mysql://root@127.0.0.1:$port_of_mysql/idem
sql() { mariadb --no-defaults -h 127.0.0.1 -P "$port_of_mysql" -u root -N idem -e "$1"; }
found 1 bad schema 'first claim' "$mysql"
[ -z "$(sql 'SHOW TABLES')" ] || fail_test 'doctor made a table'
for table in good spoiled; do expect_exit 0 idem key claim k --store "$mysql?table=$table"; done
before=$(sql 'CHECKSUM TABLE good, good_meta')
for setting in version read_only replica innodb_flush_log_at_trx_commit sync_binlog sql_mode clock schema rights \
  transaction_isolation max_allowed_packet; do
  found 0 ok $setting '' "$mysql?table=good" --min-durability power
done
[ "$(sql 'CHECKSUM TABLE good, good_meta')" = "$before" ] || fail_test 'doctor wrote'
# wrong SETTING VALUE GOOD EXIT SEVERITY REMEDY [OPTION...]: a variable of the server, for a while
wrong() {
  local name=$1 value=$2 good=$3 wanted=$4 severity=$5 remedy=$6
  shift 6
  sql "SET GLOBAL $name = $value"
  found "$wanted" "$severity" "$name" "$remedy" "$mysql?table=good" "$@"
  sql "SET GLOBAL $name = $good"
}
flush=innodb_flush_log_at_trx_commit
wrong $flush 2 1 0 warn "SET GLOBAL $flush = 1"
wrong $flush 2 1 0 warn "SET GLOBAL $flush = 1" --min-durability process
wrong $flush 2 1 1 bad "SET GLOBAL $flush = 1" --min-durability power
wrong $flush 0 1 0 warn "SET GLOBAL $flush = 1"
wrong $flush 0 1 1 bad "SET GLOBAL $flush = 1" --min-durability process
wrong read_only ON OFF 1 bad 'SET GLOBAL read_only = OFF'
wrong sql_mode "''" "'STRICT_ALL_TABLES'" 0 warn 'SET GLOBAL sql_mode'
wrong sql_mode "'STRICT_ALL_TABLES,SIMULTANEOUS_ASSIGNMENT'" "'STRICT_ALL_TABLES'" 0 warn 'SET GLOBAL sql_mode'
wrong max_allowed_packet 524288 16777216 0 warn 'SET GLOBAL max_allowed_packet'
sql 'SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE'
found 0 warn transaction_isolation 'LEVEL READ COMMITTED' "$mysql?table=good"
sql 'SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ'
sql "CHANGE MASTER TO MASTER_HOST = '127.0.0.1'"
found 1 bad replica 'its primary' "$as_root?table=good"
sql 'RESET SLAVE ALL'
# spoiled SEVERITY REMEDY ALTERATION: the finding's remedy, taken at its word, mends the table
spoiled() {
  local wanted=0
  [ "$1" != bad ] || wanted=1
  sql "ALTER TABLE spoiled $3"
  found $wanted "$1" schema "$2" "$mysql?table=spoiled"
  sql "$(idem store doctor --store "$mysql?table=spoiled" | sed -n 's/^ *try: //p')"
  found 0 ok schema '' "$mysql?table=spoiled"
  ! grep -qE '^(warn|bad)' <(idem store doctor --store "$mysql?table=spoiled") || fail_test 'not mended'
}
spoiled bad 'idem_key VARBINARY(128)' \
  'MODIFY idem_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL'
spoiled bad 'result_json MEDIUMBLOB' 'MODIFY result_json TEXT NOT NULL'
spoiled bad 'ADD UNIQUE KEY uk_idem_key' 'DROP PRIMARY KEY'
spoiled bad 'ENGINE=InnoDB' 'ENGINE=MyISAM'
spoiled warn 'ADD KEY idx_idem_expires' 'DROP KEY idx_idem_expires'
spoiled warn 'ADD KEY idx_idem_lapsed' 'DROP KEY idx_idem_lapsed'
found 1 bad schema "leave 'layout' away" "$mysql?table=good&layout=articles"
sql 'UPDATE spoiled_meta SET schema_version = 9'
found 1 bad schema '' "$mysql?table=spoiled"
sql "CREATE USER poor@localhost IDENTIFIED BY 'pw'; GRANT SELECT, INSERT ON idem.* TO poor@localhost"
poor="mysql://poor:pw@127.0.0.1:$port_of_mysql/idem?table=good"
found 1 bad rights "TO 'poor'@'localhost'" "$poor"
expect_text out 'DELETE command denied'
sql "$(idem store doctor --store "$poor" | sed -n 's/^ *try: //p')"
found 0 ok rights '' "$poor"
found 1 bad password 'user and password' "mysql://poor:wrong@127.0.0.1:$port_of_mysql/idem"
! grep -q wrong out || fail_test 'a password is told'
found 1 bad open "database's name" "${as_root/%idem/missing}"
found 1 bad reach 'server runs' mysql://u@127.0.0.1:1/idem
found 1 bad url '' mysql://u@127.0.0.1/
found 1 bad ca 'ca=FILE' 'mysql://u@127.0.0.1/idem?tls=verify&ca=/nowhere'
echo "$cases cases"
