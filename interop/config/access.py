"""Configurations of users and accounts: options of one user, of one account, and of the blocks around them."""

_USER = [
    "permissions: {publish: 'a.>'}", "permissions: {publish: [a, b]}", "permissions: {pub: a, sub: b}",
    "permissions: {import: a}", "permissions: {publish: {allow: a, deny: [b]}}",
    "permissions: {publish: {V: a, allow: $V}}", "permissions: {publish: {foo: a}}",
    "permissions: {publish: 'a b'}", "permissions: {subscribe: 'a b'}", "permissions: {subscribe: 'a b c'}",
    "permissions: {subscribe: 'a.*.> q.*'}", "permissions: {publish: 'a..b'}", "permissions: {publish: 'a.>.b'}",
    "permissions: {publish: 5}", "permissions: {allow_responses: true}", "permissions: {allow_responses: false}",
    "permissions: {allow_responses: 5}", "permissions: {allow_responses: {max: 5, expires: '1m'}}",
    "permissions: {allow_responses: {max: 5, ttl: '1m'}}",
    "permissions: {allow_responses: {max_msgs: -1, expires: '-1s'}}",
    "permissions: {allow_responses: {max: 5, expires: 5}}", "permissions: {publish_allow_responses: true}",
    "permissions: {allow_response: true}", "permissions: {zork: true}", "permissions: x", "permission: {publish: a}",
    "allowed_connection_types: [STANDARD, websocket]", "allowed_connection_types: STANDARD",
    "allowed_connection_types: [FOO]", "connection_types: [MQTT]", "clients: [MQTT]",
    "allowed_connection_types: [LEAFNODE_WS, MQTT_WS, IN_PROCESS]", "authorization: {publish: a}", "account: A",
]

_ACCOUNT = [
    "users: [{user: a, password: b}]", "nkey: x", "jetstream: enabled", "jetstream: true", "jetstream: disabled",
    "jetstream {max_mem: 1G, max_file: 1G, max_streams: 5, max_consumers: 5, max_bytes_required: true, "
    "mem_max_stream_bytes: 5, disk_max_stream_bytes: 5, max_ack_pending: 5}",
    "jetstream {cluster_traffic: owner}", "jetstream {foo: 5}", "jetstream {max_mem: '1G'}",
    "jetstream {max_bytes: true}", "jetstream {max_memory: 5, max_store: 6, streams: 7, consumers: 8}",
    "limits {max_conn: 5, max_subs: 5, max_payload: 5, max_leafnodes: 5}",
    "limits {max_connections: 5, max_subscriptions: 5, max_pay: 5, max_leafs: 5}", "limits {foo: 5}",
    "limits {max_conn: '5'}", "limits {V: 5, max_conn: $V}", "limits {max_conn: -1}", "exports: [{stream: a}]",
    "exports: [{service: a, response: stream}]", "exports: [{service: a, response: chunked}]",
    "exports: [{service: a, response_type: singleton}]", "exports: [{service: a, response: foo}]",
    "exports: [{service: a, response_threshold: 5}]", "exports: [{service: a, threshold: '5s'}]",
    "exports: [{stream: a, response: stream}]", "exports: [{stream: a, service: b}]",
    "exports: [{stream: a, accounts: [B]}]", "exports: [{stream: a, accounts: [C]}]",
    "exports: [{stream: a.*, account_token_position: 2}]", "exports: [{stream: a.*, account_token_position: 1}]",
    "exports: [{service: a, latency: lat}]", "exports: [{service: a, latency: {subject: lat, sampling: 50%}}]",
    "exports: [{service: a, latency: {subject: lat, sampling: headers}}]",
    "exports: [{service: a, latency: {subject: lat, sampling: 500}}]", "exports: [{stream: a, latency: lat}]",
    "exports: [{service: a, allow_trace: true}]", "exports: [{stream: a, allow_trace: true}]", "exports: [{foo: a}]",
    "exports: [{stream: 'a b'}]", "exports {stream: a}", "mappings {a: b}", "maps {a: b}",
    "mappings {a: [{dest: b, weight: 50%}]}", "msg_trace: a.b", "trace_dest: a.b",
    "msg_trace {dest: a.b, sampling: 50%}", "msg_trace {dest: 'a.*'}", "msg_trace {dest: a, sampling: 500}",
    "default_permissions {publish: a}", "zork: 5",
]

_AROUND = [
    "authorization { users: [ {user: a, password: b}, {user: a, password: c} ] }",
    "authorization { users: [ {nkey: UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX}, {nkey: "
    "UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX} ] }",
    "authorization { users: [ {nkey: X} ] }",
    "authorization { users: [ {nkey: UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX, password: x} ] }",
    "authorization { users: [ {user: a, nkey: UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX} ] }",
    "authorization { users: [ {user: a} ] }", "authorization { users: [ {password: a} ] }",
    "authorization { users: [ {} ] }", "authorization { users: {user: a} }", "authorization { users: [ a ] }",
    "authorization { users: [{user: a, password: b}], user: c, password: d }",
    "authorization { users: [{user: a, password: b}], token: d }", "authorization { users: [] }",
    "authorization { timeout: 0 }", "authorization {user: a}", "authorization {password: a}",
    "authorization { permissions: {publish: a}, user: a, password: b}",
    "authorization { default_permissions: {publish: a}, users: [{user: a, password: b}]}",
    "accounts { A { nkey: ACFIRY65OQE7DFP5KLNS2PF2LVZMUZYJX4OZIEQ36N2IQANUB5XVYYOU } B {} }",
    "accounts { A { exports: [{stream: a}] } B { imports: [{stream: {account: A, subject: a}}] } }",
    "accounts { A { exports: [{stream: a}] } B { imports: [{stream: {account: A, subject: b}}] } }",
    "accounts { A { exports: [{stream: a.>}] } B { imports: [{stream: {account: A, subject: a.b}, prefix: x}] } }",
    "accounts { A { exports: [{stream: a.>}] } B { imports: [{stream: {account: A, subject: a.b}, to: x}] } }",
    "accounts { A { exports: [{stream: a.>}] } B { imports: [{stream: {account: A, subject: a.*}, to: x.$1}] } }",
    "accounts { A { exports: [{stream: a.>}] } B { imports: [{stream: {account: A, subject: a.*}, to: x, "
    "prefix: y}] } }",
    "accounts { A { exports: [{service: a.>}] } B { imports: [{service: {account: A, subject: a.*}, to: x.$1}] } }",
    "accounts { A { exports: [{service: a.>}] } B { imports: [{service: {account: A, subject: a.*}, to: x}] } }",
    "accounts { A { exports: [{service: a.>}] } B { imports: [{service: {account: A, subject: a.b}, share: true}] } }",
    "accounts { A { exports: [{service: a.>}] } B { imports: [{service: {account: C, subject: a.b}}] } }",
    "accounts { A { exports: [{service: a}], imports: [{service: {account: B, subject: b}, to: a}] } B { "
    "exports: [{service: b}], imports: [{service: {account: A, subject: a}, to: b}] } }",
    "accounts { A { exports: [{stream: a, accounts: [B]}] } C { imports: [{stream: {account: A, subject: a}}] } B {}}",
    "accounts: [A, B]", "accounts: {A: {}}", "accounts: {A: x}", "accounts { $G {} }",
    "accounts { $SYS {users: [{user: a, password: b}]} }", "accounts { 'a b' {} }",
    "accounts {A {users: [{user: a, password: a}]} B {users: [{user: a, password: b}]}}",
    "accounts {A {users: [{user: a, password: a}]}}\nauthorization {users: [{user: a, password: b}]}",
    "accounts {A {users: [{user: a, password: a}]}}\nauthorization {user: a, password: b}",
    "accounts {A {users: [{user: a, password: a}]}}\nauthorization {token: b}",
    "accounts {A {users: [{user: a, password: a}]}}\nauthorization {timeout: 1}",
    "accounts {A {}}\nsystem_account: B", "accounts {A {}}\nsystem_account: A",
]

CASES = [
    *[f"authorization {{ users: [ {{user: a, password: b, {inner}}} ] }}" for inner in _USER],
    *[f"accounts {{ A {{ {inner} }} B {{}} }}" for inner in _ACCOUNT],
    *_AROUND,
]
