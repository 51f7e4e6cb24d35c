"""Commands: each case runs on new servers and has one command per line.

The mark before a command determines what is compared:

    =  exit code and output
    ~  exit code and the lines of the output in any order, because the order is random
    ?  the exit code only, because the output contains addresses, byte counts, or speeds
    @  exit code and output; the command is repeated until they are equal, because its effect takes time
    &  nothing: the command runs until the end of the case, at the same time as the following ones
"""

SYSTEM = "--user sys --password sys"

CASES = {
    "checks": f"""
        ? server check connection
        = server check jetstream
        = server check server --name S
        ? rtt
        = stream add ORDERS --subjects=orders.> --storage=file --defaults
        = consumer add ORDERS C --pull --defaults
        = server check stream --stream ORDERS
        = server check consumer --stream ORDERS --consumer C
        = server check message --stream ORDERS --subject orders.1
        = pub orders.1 hello
        = server check message --stream ORDERS --subject orders.1 --content hello
        = server check stream --stream ORDERS --msgs-critical 5
        = server check stream --stream NONE
        = server check request --subject nobody
    """,
    "streams": """
        = stream add ORDERS --subjects=orders.> --storage=file --defaults
        = stream add ORDERS --subjects=orders.> --storage=memory --defaults
        = stream add OTHER --subjects=orders.1 --defaults
        = stream ls
        = stream ls -n
        = stream info ORDERS
        = pub orders.1 hello
        = pub orders.2 hello -H a:b --count 5
        = pub --jetstream orders.js x
        = stream info ORDERS --json
        = stream get ORDERS 1
        = stream get ORDERS --last-for orders.2
        = stream get ORDERS 99
        = stream subjects ORDERS --json
        = stream report
        = stream state ORDERS
        = stream find --subject orders.1
        = stream edit ORDERS --max-age 1h -f
        = stream edit ORDERS --max-consumers 3 -f
        = stream rmm ORDERS 2 -f
        = stream rmm ORDERS 2 -f
        ? stream gaps ORDERS -f
        = stream copy ORDERS COPY --subjects copy.>
        = stream purge ORDERS --subject orders.2 -f
        = stream purge ORDERS -f
        = stream seal ORDERS -f
        = pub --jetstream orders.js x
        = stream rm ORDERS -f
        = stream rm ORDERS -f
    """,
    "copies of streams": """
        = stream add ORDERS --subjects=orders.> --defaults
        = pub orders.1 hello --count 3
        = stream add MIRROR --mirror ORDERS --defaults
        = stream add ALL --source ORDERS --defaults
        = stream add MIRROR2 --mirror NONE --defaults
        @ stream ls
        @ stream info MIRROR --json
        @ stream info ALL --json
        = stream add BOTH --mirror ORDERS --source MIRROR --defaults
        = stream edit MIRROR --no-mirror --subjects orders2.> -f
    """,
    "what streams can be told": """
        = stream add A --subjects=a.> --storage memory --retention work --discard new --max-msgs 3 --discard-per-subject --max-msgs-per-subject 2 --defaults
        = pub a.1 x --count 2 --jetstream
        = pub a.1 x --jetstream
        = stream add B --subjects=b.> --republish-source b.* --republish-destination again.{{{{wildcard(1)}}}} --transform-source b.* --transform-destination c.{{{{wildcard(1)}}}} --defaults
        = stream add C --subjects=c.> --dupe-window 10s --max-msg-size 10 --max-consumers 1 --allow-direct --allow-rollup --deny-delete --defaults
        = pub c.1 short --jetstream
        = pub c.1 much-too-long-for-it --jetstream
        = stream rmm C 1 -f
        = consumer add C ONE --pull --defaults
        = consumer add C TWO --pull --defaults
        = stream add D --subjects=d.> --allow-msg-ttl --subject-del-markers-ttl 1m --allow-schedules --allow-batch --allow-counter --defaults
        = stream add D --subjects=d.> --allow-msg-ttl --subject-del-markers-ttl 1m --allow-schedules --allow-batch --defaults
        = pub d.1 x -H Nats-TTL:1h --jetstream
        = pub d.1 x -H Nats-TTL:nonsense --jetstream
        = pub d.1 x -H Nats-Expected-Last-Sequence:9 --jetstream
        = pub d.1 x -H Nats-Msg-Id:1 --jetstream
        = pub d.1 x -H Nats-Msg-Id:1 --jetstream
        = stream get D 1
        = stream info D --json
        = stream add E --subjects=e.> --replicas 3 --defaults
        = stream add F --subjects=f.> --compression s2 --first-sequence 100 --metadata a:b --description text --persist-mode async --defaults
        = stream info F --json
        = stream add bad.name --subjects=g.> --defaults
    """,
    "what consumers can be told": """
        = stream add S --subjects=s.> --defaults
        = pub s.1 x --count 10
        = consumer add S A --pull --ack all --wait 10s --max-deliver 3 --backoff linear --backoff-min 1s --backoff-max 5s --backoff-steps 2 --max-waiting 5 --max-outstanding 7 --defaults
        = consumer add S B --pull --deliver 5 --sample 50 --headers-only --inactive-threshold 1h --max-pull-batch 2 --max-pull-expire 3s --max-pull-bytes 1000 --defaults
        ~ consumer next S B --count 5
        = consumer add S C --target c.deliver --deliver last --heartbeat 1s --flow-control --deliver-group g --bps 1000 --ack none --defaults
        = consumer add S D --pull --deliver subject --replay original --metadata a:b --description text --memory --defaults
        = consumer add S E --pull --overflow-groups work --defaults
        = consumer next S E --count 1
        = consumer add S F --pull --prioritized-groups g --defaults
        = consumer add S G --pull --pinned-groups one --defaults
        = consumer add S H --pull --filter s.1 --filter s.* --defaults
        = consumer add S I --pull --replicas 3 --defaults
        = consumer add S J --pull --deliver 1h --ack explicit --defaults
        = consumer ls S
        = consumer report S
        = consumer info S C --json
    """,
    "services": """
        & reply help ok
        & reply --queue workers jobs {{{{Count}}}}
        & micro serve echo
        @ micro ls
        @ request help x
        = request help x --replies 1 --raw
        = request jobs x --raw
        = micro info echo --json
        ? micro stats echo
        ? micro ping echo
    """,
    "consumers": """
        = stream add ORDERS --subjects=orders.> --defaults
        = pub orders.1 hello --count 4
        = pub orders.2 hello --count 4
        = consumer add ORDERS C1 --pull --defaults
        = consumer add ORDERS C2 --filter orders.2 --ack explicit --pull --deliver all --defaults
        = consumer add ORDERS P1 --target deliver.p1 --deliver all --ack none --replay instant --defaults
        = consumer add ORDERS P2 --target orders.loop --deliver all --defaults
        = consumer add ORDERS C3 --pull --filter other.> --defaults
        = consumer ls ORDERS
        = consumer ls ORDERS -n
        = consumer info ORDERS C1
        = consumer info ORDERS NONE
        = consumer next ORDERS C1 --count 3 --no-ack
        = consumer next ORDERS C2 --count 2 --ack
        = consumer next ORDERS C2 --nak
        = consumer next ORDERS C2 --term
        = consumer info ORDERS C2 --json
        = consumer report ORDERS
        = consumer edit ORDERS C1 --max-pending 5 -f
        = consumer find ORDERS
        = consumer state ORDERS C1
        = consumer copy ORDERS C1 C4
        ? consumer pause ORDERS C1 1h -f
        = consumer resume ORDERS C1 -f
        = consumer add ORDERS PIN --pull --pinned-groups work --pinned-ttl 1m --defaults
        = consumer unpin ORDERS PIN work -f
        = consumer unpin ORDERS C1 work -f
        = consumer rm ORDERS P1 -f
        = consumer rm ORDERS P1 -f
    """,
    "keys and values": """
        = kv add CONFIG --history 5 --ttl 1h
        = kv add CONFIG --history 3
        = kv ls
        = kv put CONFIG a 1
        = kv put CONFIG a 2
        = kv create CONFIG b 1
        = kv create CONFIG b 1
        = kv update CONFIG b 2 3
        = kv update CONFIG b 2 3
        = kv get CONFIG a
        = kv get CONFIG a --raw
        = kv get CONFIG a --revision 1
        = kv get CONFIG missing
        = kv history CONFIG a
        = kv revert CONFIG a 1 --force
        = kv del CONFIG a -f
        = kv purge CONFIG b -f
        = kv ls CONFIG
        = kv status CONFIG
        = kv compact CONFIG -f
        = kv edit CONFIG --history 7
        = kv put CONFIG a..b 1
        = kv del CONFIG -f
        = kv get CONFIG a
    """,
    "objects": """
        = object add FILES
        ? object put FILES {file} --name one -f --no-progress
        = object ls
        = object ls FILES
        = object info FILES
        ? object info FILES one
        ? object get FILES one -O {copy} -f --no-progress
        = object get FILES none -O {copy} -f --no-progress
        = object del FILES one -f
        = object seal FILES -f
        = object put FILES {file} --name two -f --no-progress
        = object del FILES -f
    """,
    "counters": """
        = stream add COUNT --subjects=count.> --allow-counter --allow-direct --defaults
        = counter increment count.a 5
        = counter increment count.b 123456789012345678901234567890
        = counter decrement count.a 2
        = counter get count.a
        = counter view count.a
        = counter list COUNT
        = pub count.a 1 --jetstream
        = pub count.a '' -H Nats-Incr:one --jetstream
    """,
    "backups": """
        = stream add ORDERS --subjects=orders.> --defaults
        = pub orders.1 hello --count 3
        = consumer add ORDERS C --pull --defaults
        ? stream backup ORDERS {folder}/one --no-progress
        = stream restore {folder}/one --no-progress
        = stream rm ORDERS -f
        ? stream restore {folder}/one --no-progress
        = stream info ORDERS
        = consumer info ORDERS C
        = kv add CONFIG
        = kv put CONFIG a 1
        ? account backup {folder}/all -f
        = stream rm ORDERS -f
        = kv del CONFIG -f
        ? account restore {folder}/all
        = stream ls -n
        = kv get CONFIG a --raw
    """,
    "accounts": """
        ? account info
        ? account report connections
        ? account report statistics
        = account tls
        = server passwd -p short
        = errors lookup 10058
    """,
    "system": f"""
        = stream add ORDERS --subjects=orders.> --defaults
        = consumer add ORDERS C --pull --defaults
        ? server ping 1 {SYSTEM}
        ? server ls {SYSTEM}
        ? server info {SYSTEM}
        ? server report connections {SYSTEM}
        ? server report jetstream {SYSTEM}
        ? server report accounts {SYSTEM}
        = server report health {SYSTEM}
        ? server request variables {SYSTEM}
        ? server request subscriptions {SYSTEM}
        ? server request connections {SYSTEM}
        ? server request routes {SYSTEM}
        ? server request gateways {SYSTEM}
        ? server request leafnodes {SYSTEM}
        ? server request accounts {SYSTEM}
        ? server request jetstream {SYSTEM}
        ? server request jetstream-health {SYSTEM}
        ? server request kick 9999 {{server}} {SYSTEM}
        ? server account info APP {SYSTEM}
        = server stream-check {SYSTEM}
        = server consumer-check {SYSTEM}
        ? server config reload {{server}} -f {SYSTEM}
        = server account info APP
        = server ls --user sys --password wrong
    """,
    "messages": """
        = pub nobody.at.all x
        = request nobody.at.all x
        = sub nobody.> --count 1 --timeout 1s --wait 300ms
        = trace nobody hello
        & sub 'heard.>'
        @ trace heard.it hello
        = micro ls
        = pub bad..subject x
    """,
    "bench": """
        ? bench pub demo --msgs 2000 --no-progress
        ? bench js pub sync jsdemo --msgs 200 --create --no-progress
        ? bench js pub async jsdemo --msgs 200 --no-progress --purge
        ? bench js ordered --stream benchstream --msgs 100 --no-progress
        ? bench kv put --msgs 100 --no-progress
        ? bench kv get --msgs 100 --no-progress
    """,
}
