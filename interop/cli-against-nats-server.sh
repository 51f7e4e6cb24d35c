#!/usr/bin/env bash
# Tests the command-line tools against nats-server: pub, sub, request, reply, rtt, bench, and the commands for
# streams, consumers, buckets, and objects. NATS_SERVER is the server's binary, FANLINE the program (default: the
# release build).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
server=${NATS_SERVER:?set NATS_SERVER to a nats-server binary}
fanline=${FANLINE:-$here/../target/release/fanline}
work=$(mktemp -d)
passed=0
failed=0

"$server" -a 127.0.0.1 -p -1 --ports_file_dir "$work" -js -sd "$work/streams" >"$work/server.log" 2>&1 &
server_pid=$!
trap 'kill "$server_pid" 2>/dev/null || true; wait "$server_pid" 2>/dev/null || true; rm -rf "$work"' EXIT

# Waits until a command succeeds. The script fails if the command does not succeed in time.
await() {
    for _ in $(seq 200); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.05
    done
    echo "never happened: $*" >&2
    exit 1
}
await grep -q 'Server is ready' "$work/server.log"
url=$(grep -o 'Listening for client connections on .*' "$work/server.log" | awk '{print $NF}')
export FANLINE_URL=$url

# check NAME EXPECTED ACTUAL
check() {
    if [ "$2" = "$3" ]; then
        echo "ok    cli: $1"
        passed=$((passed + 1))
    else
        echo "FAIL  cli: $1"
        printf 'expected:\n%s\nseen:\n%s\n' "$2" "$3"
        failed=$((failed + 1))
    fi
}

# Starts a tool in the background and waits until it reports that it has subscribed.
listen() {
    "$fanline" "$@" >"$work/out" 2>"$work/err" &
    listener=$!
    await grep -qE 'Subscribed|Answering' "$work/err"
}

listen sub 'a.>' --count 3
"$fanline" pub -q a.b hello -H 'K: v' --reply r
printf 'one\ntwo\n' | "$fanline" pub -q a.lines --lines
wait "$listener"
check 'pub and sub' '[#1] Received on "a.b" with reply "r"
K: v

hello

[#2] Received on "a.lines"
one

[#3] Received on "a.lines"
two' "$(cat "$work/out")"

code=0; "$fanline" request nobody.home x 2>"$work/err" || code=$?
check 'no responders' '3 fanline: no responders: the subject has no subscribers' "$code $(cat "$work/err")"

listen reply upper --count 1 --command 'tr a-z A-Z'
check 'request and reply --command' HELLO "$("$fanline" request upper hello --raw)"
wait "$listener"

listen reply echo --echo
check 'request and reply --echo' 'a b' "$("$fanline" request echo 'a b' --raw)"
check 'request --replies' 'x' "$("$fanline" request echo x --raw --replies 0 --timeout 300ms)"
kill -INT "$listener"
code=0; wait "$listener" || code=$?
check 'reply ends on SIGINT' 0 "$code"

check 'rtt' 2 "$("$fanline" rtt --count 2 | grep -c '^RTT: ')"
check 'bench pubsub' 'publish 1000 subscribe 4000' \
    "$("$fanline" bench pubsub b --msgs 1000 --pub 2 --sub 4 | awk '/^(publish|subscribe)/ {printf "%s%s %s", sep, $1, $3; sep=" "}')"
check 'bench request' 100 "$("$fanline" bench request b --msgs 100 | awk '/^request/ {print $3}')"

# Prints the value of a field of the JSON on stdin: field .config.name
field() {
    python3 -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].strip(".").split("."):
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value)' "$1"
}

"$fanline" stream add ORDERS --subjects 'orders.>' --max-age 7d --max-msgs 100 >"$work/out"
check 'stream add' 604800000000000 "$("$fanline" stream info ORDERS --json | field .config.max_age)"
"$fanline" stream edit ORDERS --max-msgs 50 --force >"$work/out"
check 'stream edit' 50 "$("$fanline" stream info ORDERS --json | field .config.max_msgs)"
for number in 1 2 3 4 5 6; do "$fanline" pub -q "orders.$((number % 2))" "$number"; done
check 'stream ls' ORDERS "$("$fanline" stream ls --names)"
check 'stream subjects' 3 "$("$fanline" stream subjects ORDERS --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["orders.1"])')"
check 'stream get' '2 6' "$("$fanline" stream get ORDERS 2 --raw) $("$fanline" stream get ORDERS --last-for orders.0 --raw)"
check 'stream view' '1 2 3 4 5 6' "$("$fanline" stream view ORDERS --raw | xargs)"
"$fanline" stream rmm ORDERS 3 --force 2>"$work/err"
check 'stream purge' 'Purged 3 messages from ORDERS' "$("$fanline" stream purge ORDERS --subject orders.0 --force 2>&1)"
check 'stream report' '1 stream' "$("$fanline" stream report | tail -1 | cut -c1-8)"

"$fanline" consumer add ORDERS work --filter orders.1 --wait 1m >"$work/out"
check 'consumer next' 1 "$("$fanline" consumer next ORDERS work --raw)"
check 'consumer info' '1 1' "$("$fanline" consumer info ORDERS work --json | field .num_pending) $("$fanline" consumer info ORDERS work --json | field .ack_floor.stream_seq)"
"$fanline" consumer pause ORDERS work 1h --force 2>"$work/err"
check 'consumer pause' True "$("$fanline" consumer info ORDERS work --json | field .paused)"
"$fanline" consumer resume ORDERS work --force 2>"$work/err"

"$fanline" stream backup ORDERS "$work/backup" 2>"$work/err"
"$fanline" stream rm ORDERS --force 2>"$work/err"
code=0; "$fanline" stream info ORDERS 2>"$work/err" || code=$?
check 'stream rm' '1 fanline: stream not found (10059)' "$code $(cat "$work/err")"
"$fanline" stream restore "$work/backup" >"$work/out"
check 'stream restore' '1 5' "$("$fanline" stream view ORDERS --raw | xargs)"
check 'a consumer that was restored' 5 "$("$fanline" consumer next ORDERS work --raw)"

"$fanline" kv add prices --history 5 >"$work/out"
check 'kv put and get' '2.00' "$("$fanline" kv put prices tea 2.00 2>"$work/err" && "$fanline" kv get prices tea --raw)"
"$fanline" kv update prices tea 2.10 1 2>"$work/err"
code=0; "$fanline" kv update prices tea 2.20 1 2>"$work/err" || code=$?
check 'kv update' 1 "$code"
"$fanline" kv create prices cake 3.50 2>"$work/err"
"$fanline" kv del prices cake --force 2>"$work/err"
check 'kv ls' tea "$("$fanline" kv ls prices)"
check 'kv history' 'PUT DEL' "$("$fanline" kv history prices cake --json | field .0.operation) $("$fanline" kv history prices cake --json | field .1.operation)"
check 'kv watch' '"tea"' "$("$fanline" kv watch prices tea --count 1 --json 2>"$work/err" | grep -o '"tea"')"
"$fanline" kv rm prices --force 2>"$work/err"

head -c 5000000 /dev/urandom >"$work/large"
"$fanline" object add files >"$work/out"
"$fanline" object put files "$work/large" --name large >"$work/out"
"$fanline" object get files large --output "$work/back" 2>"$work/err"
check 'object put and get' same "$(cmp "$work/large" "$work/back" && echo same)"
check 'object ls' large "$("$fanline" object ls files --names)"
"$fanline" object del files large --force 2>"$work/err"
check 'object del' '' "$("$fanline" object ls files --names)"

echo "end   cli: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
