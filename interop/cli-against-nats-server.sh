#!/usr/bin/env bash
# The command-line tools against nats-server: pub, sub, request, reply, rtt and bench.
# NATS_SERVER names the server's binary, FANLINE the program (default: the release build).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
server=${NATS_SERVER:?set NATS_SERVER to a nats-server binary}
fanline=${FANLINE:-$here/../target/release/fanline}
work=$(mktemp -d)
passed=0
failed=0

"$server" -a 127.0.0.1 -p -1 --ports_file_dir "$work" >"$work/server.log" 2>&1 &
server_pid=$!
trap 'kill "$server_pid" 2>/dev/null || true; wait "$server_pid" 2>/dev/null || true; rm -rf "$work"' EXIT

# Waits until a command succeeds; what never happens ends the script.
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

# Starts a tool in the background and waits until it says that it listens.
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
check 'no responders' '3 fanline: no responders: nobody is subscribed to the subject' "$code $(cat "$work/err")"

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

echo "end   cli: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
