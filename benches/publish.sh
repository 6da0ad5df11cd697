# shellcheck shell=bash
# The cases of `scripts/bench publish`; that script sources this file and says what it has.
# shellcheck disable=SC2154  # runs, version, mq, work, vhost and functions are of scripts/bench

results=$PWD/target/bench
bulk_count=${MQ_BENCH_COUNT:-200000}
memory_count=${MQ_BENCH_MEMORY_COUNT:-1000000}
rounds=${MQ_BENCH_ROUNDS:-3}
queue_type=${MQ_BENCH_QUEUE_TYPE:-classic}
python=/usr/bin/python3

# Whether a case is wanted: one, bulk or start.
wants() { [[ " ${MQ_BENCH_CASES:-one bulk start} " == *" $1 "* ]]; }
# Whether a peer that is not measured unasked was asked for.
is_named() { [[ " ${MQ_BENCH_PEERS:-} " == *" $1 "* ]]; }

# A remark that goes into the report: kind and text.
remark() { printf '%s\t%s\n' "$1" "$2" >>"$results/publish.remarks"; }
left_out() {
  remark left_out "$1: $2"
  echo "bench: $1 is left out: $2" >&2
}

# One measured run: case, bytes, window, name, number of the run and of messages, command.
# A peer that fails is left out there and told of; mq is not to fail.
measured() {
  local row=("${@:1:6}")
  worked=yes
  shift 6
  : >"$work/took"
  if timeout 900 "$work/measure" "$work/took" "$@" </dev/null >/dev/null 2>"$work/said"; then
    (IFS=$'\t'; echo "${row[*]}"$'\t'"$(cat "$work/took")") >>"$results/publish.tsv"
    return
  fi
  worked=no
  local said
  { echo "${row[*]}:"; cat "$work/said"; } >>"$results/publish.log"
  said=$(grep -im 1 error "$work/said" || tail -n 1 "$work/said")
  left_out "${row[3]} (${row[0]}, ${row[1]} bytes, window ${row[2]}, run ${row[4]})" "it failed: ${said:-without a word} (publish.log has the rest)"
  [ "${row[3]}" != mq ] || { cat "$work/said" >&2; exit 1; }
}

# --- The peers ------------------------------------------------------------------

# Those of the bulk, and of one message; each name has a command in a function below.
bulk=(mq c lapin pika)
one=(mq amqp-publish pika)

peer() {
  local kind=$1
  shift
  case $kind in
    c) "$@" "$work/publish_loop" ;;
    lapin | lapin-one-thread) "$@" "$lapin" ;;
    pika) "$@" "$python" benches/publish_pika.py ;;
    aio-pika) "$@" "$python" benches/publish_aio_pika.py ;;
    amqplib) "$@" env NODE_PATH="$results/node/node_modules" node benches/publish_amqplib.js ;;
    amqp091-go) "$@" "$work/publish_amqp091" ;;
  esac
}

prepare_peers() {
  gcc -O2 -Wall -static -o "$work/measure" benches/measure.c
  gcc -O2 -Wall -o "$work/publish_loop" benches/publish_loop.c -lrabbitmq
  remark peer "c: benches/publish_loop.c on librabbitmq $(dpkg-query -W -f '${Version}' librabbitmq-dev)"
  remark peer "amqp-publish: amqp-tools $(dpkg-query -W -f '${Version}' amqp-tools)"
  remark peer "pika: $("$python" -c 'import pika; print(pika.__version__)'), BlockingConnection"
  if wants bulk; then
    prepare_lapin
    prepare_aio_pika
    prepare_amqplib
    prepare_amqp091
    left_out amqprs "it would be another crate for the sake of a number"
  fi
  if wants one; then
    prepare_rabbitmqadmin_1
    prepare_rabbitmqadmin_2
  fi
}

prepare_lapin() {
  lapin=$(cargo build --quiet --locked --profile "$profile" --bench publish_loop --message-format=json |
    sed -n 's/.*"name":"publish_loop".*"executable":"\([^"]*\)".*/\1/p')
  remark peer "lapin: benches/publish_loop.rs on lapin $(cargo tree --locked --offline --depth 1 | sed -n 's/.*lapin v//p'), profile $profile"
  ! is_named lapin-one-thread || bulk+=(lapin-one-thread)
}

prepare_aio_pika() {
  ! is_named aio-pika || needs python3-aio-pika
  local has
  has=$("$python" -c 'import aio_pika; print(aio_pika.__version__)' 2>/dev/null) ||
    { left_out aio-pika "python3-aio-pika is not installed"; return; }
  bulk+=(aio-pika)
  remark peer "aio-pika: $has"
}

prepare_amqplib() {
  local folder=$results/node
  if is_named amqplib && [ ! -d "$folder/node_modules/amqplib" ]; then
    command -v npm >/dev/null || needs nodejs npm
    mkdir -p "$folder"
    npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$folder" amqplib >&2
  fi
  command -v node >/dev/null || { left_out amqplib "Node is not installed"; return; }
  [ -d "$folder/node_modules/amqplib" ] || { left_out amqplib "its package was not asked for"; return; }
  bulk+=(amqplib)
  remark peer "amqplib: $(sed -n 's/.*"version": "\(.*\)".*/\1/p' "$folder/node_modules/amqplib/package.json") on Node $(node --version)"
}

prepare_amqp091() {
  ! is_named amqp091-go || needs golang-go golang-github-rabbitmq-amqp091-go-dev
  local package=golang-github-rabbitmq-amqp091-go-dev
  if ! command -v go >/dev/null || ! dpkg -s "$package" >/dev/null 2>&1; then
    left_out amqp091-go "golang-go or $package is not installed"
    return
  fi
  GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$results/go go build -o "$work/publish_amqp091" benches/publish_amqp091.go
  bulk+=(amqp091-go)
  remark peer "amqp091-go: $(dpkg-query -W -f '${Version}' "$package") with $(go version | cut -d ' ' -f 3)"
}

prepare_rabbitmqadmin_1() {
  if ! curl -fsS --noproxy "*" -o "$work/rabbitmqadmin" "$MQ_MANAGEMENT_URL/cli/rabbitmqadmin" 2>/dev/null; then
    left_out "rabbitmqadmin v1" "RabbitMQ $version does not serve it any more"
    return
  fi
  one+=(rabbitmqadmin-v1)
  remark peer "rabbitmqadmin-v1: as RabbitMQ $version serves it, through the management API"
}

prepare_rabbitmqadmin_2() {
  local folder=$results/cargo
  if is_named rabbitmqadmin-v2 && [ ! -x "$folder/bin/rabbitmqadmin" ]; then
    cargo install --quiet --locked --root "$folder" rabbitmqadmin >&2
  fi
  [ -x "$folder/bin/rabbitmqadmin" ] || { left_out "rabbitmqadmin v2" "it was not asked for, and is built for minutes"; return; }
  one+=(rabbitmqadmin-v2)
  remark peer "rabbitmqadmin-v2: $("$folder/bin/rabbitmqadmin" --version), through the management API"
}

# --- Case 1: one message, as a whole process --------------------------------------

# Calls what it is given with the rest of the command behind.
one_message() {
  local name=$1 place=${MQ_MANAGEMENT_URL#*@}
  shift
  case $name in
    mq) "$@" "$mq" publish -q hello hello ;;
    amqp-publish) "$@" amqp-publish --url="$broker" -r hello -p -b hello ;;
    pika) "$@" "$python" benches/publish_pika.py "$broker" hello 1 5 1 ;;
    rabbitmqadmin-v1)
      "$@" "$python" "$work/rabbitmqadmin" -H "${place%:*}" -P "${place#*:}" -u "$user" -p "$password" -V "$vhost" \
        publish routing_key=hello payload=hello 'properties={"delivery_mode":2}'
      ;;
    rabbitmqadmin-v2)
      "$@" "$results/cargo/bin/rabbitmqadmin" --host "${place%:*}" --port "${place#*:}" --username "$user" \
        --password "$password" --vhost "$vhost" publish message --routing-key hello --payload hello \
        --properties '{"delivery_mode":2}'
      ;;
  esac
}

case_one() {
  local run name
  empty_queue
  # Files and caches are warm for all.
  for name in "${one[@]}"; do one_message "$name" quietly || true; done
  empty_queue
  for ((run = 0; run < runs; run++)); do
    in_turn "$run" "${one[@]}"
    for name in "${turn[@]}"; do one_message "$name" measured one 5 1 "$name" "$run" 1; done
  done
  must_have "$(grep -c '^one' "$results/publish.tsv")"
}

# The names, in `turn`; each run begins with another, and goes the other way.
in_turn() {
  local run=$1 at
  shift
  turn=("${@:run % $# + 1}" "${@:1:run % $#}")
  ((run % 2 == 0)) || {
    local turned=()
    for ((at = ${#turn[@]} - 1; at >= 0; at--)); do turned+=("${turn[at]}"); done
    turn=("${turned[@]}")
  }
}

# --- Case 2: many confirmed messages, by size and window ---------------------------

case_bulk() {
  local round size window name count
  for ((round = 0; round < rounds; round++)); do
    for size in 100 1000; do
      head -c "$size" /dev/zero | tr '\0' x >"$work/body.$size"
      for window in 1 100 1000 2000; do
        in_turn "$round" "${bulk[@]}"
        for name in "${turn[@]}"; do
          [ "$window" = 1 ] || [ "$name" != pika ] || continue
          count=$(messages "$name" "$window")
          empty_queue
          if [ "$name" = mq ]; then
            measured bulk "$size" "$window" mq "$round" "$count" \
              "$mq" publish -q hello --repeat "$count" --in-flight "$window" --quiet "@$work/body.$size"
          else
            bulk_run() { measured bulk "$size" "$window" "$name" "$round" "$count" "$@" "$broker" hello "$count" "$size" "$window" "${threads[@]}"; }
            threads=()
            [ "$name" != lapin-one-thread ] || threads=(one-thread)
            peer "$name" bulk_run
          fi
          # Whoever is measured has sent them all.
          [ "$worked" = no ] || must_have "$count"
        done
      done
    done
  done
}

# One at a time takes a wait for each, and two of the peers are slow: fewer tell as much.
messages() {
  local count=$bulk_count
  [ "$2" != 1 ] || count=$((count / 20))
  [ "$1" != aio-pika ] || [ "$2" = 1 ] || count=$((count / 10))
  echo $((count > 0 ? count : 1))
}

# --- Case 3: what mq costs before it does anything, and how much memory ------------

case_start() {
  local run
  for ((run = 0; run < runs; run++)); do
    measured start 0 0 true "$run" 0 /bin/true
    measured start 0 0 mq "$run" 0 "$mq" --help
  done
  remark binary "$(stat -Lc %s "$mq")"
  empty_queue
  measured memory-repeat 100 2000 mq 0 "$memory_count" \
    "$mq" publish -q hello --repeat "$memory_count" --in-flight 2000 --quiet "$(head -c 100 /dev/zero | tr '\0' x)"
  must_have "$memory_count"
  empty_queue
  head -c 100 /dev/zero | tr '\0' x >"$work/line"
  awk -v count="$memory_count" '{ for (n = 0; n < count; n++) print }' "$work/line" >"$work/lines"
  measured memory-lines 100 2000 mq 0 "$memory_count" \
    "$mq" publish -q hello --lines "$work/lines" --in-flight 2000 --quiet
  must_have "$memory_count"
}

# --- The queue --------------------------------------------------------------------

empty_queue() {
  curl -fsS --noproxy "*" -o /dev/null -X DELETE "$MQ_MANAGEMENT_URL/api/queues/$vhost/hello" 2>/dev/null || true
  api PUT "queues/$vhost/hello" "{\"durable\":true,\"arguments\":{\"x-queue-type\":\"$queue_type\"}}"
}

# The queue has to have so many messages in the end. It is asked itself: the management
# API tells of a quorum queue every 5 seconds only, and that of 3.10 of no queue by itself.
must_have() {
  local tries counted
  for ((tries = 0; tries < 100; tries++)); do
    counted=$("$work/publish_loop" "$broker" hello)
    [ "$counted" != "$1" ] || return 0
    sleep 0.1
  done
  echo "bench: queue 'hello' of vhost '$vhost' has $counted messages, not the $1 that were sent: this run counts for nothing" >&2
  exit 1
}

# --- All ---------------------------------------------------------------------------

bench_publish() {
  local credentials=${MQ_MANAGEMENT_URL#*://}
  credentials=${credentials%@*}
  user=${credentials%%:*} password=${credentials#*:} broker=${MQ_URL%/*}/$vhost
  mkdir -p "$results"
  rm -f "$results/publish.log"
  : >"$results/publish.remarks"
  printf 'case\tbytes\twindow\tpeer\trun\tmessages\tmicroseconds\tuser\tsystem\tkib\n' >"$results/publish.tsv"
  new_vhost
  remark about "RabbitMQ $version, $queue_type queue, $(nproc) processors, load $(cut -d ' ' -f 1 /proc/loadavg) before, $(date -u +%F)"
  remark about "$("$mq" --version), $(if [ -n "${MQ_BENCH_BINARY:-}" ]; then echo "the binary of MQ_BENCH_BINARY"; else echo "profile $profile"; fi)"
  prepare_peers
  ! wants one || case_one
  ! wants bulk || case_bulk
  ! wants start || case_start
  "$python" -B benches/publish_report.py "$results"
}
