"""Configurations, each a text. FILES contains the files that they include."""

from config import access, blocks, helm

FILES = {
    "inc/a.conf": "port: 5\n",
    "inc/b.conf": "host: bb\n",
    "inc/chain.conf": "include b.conf\n",
    "inc/name.conf": "name: zz\n",
    "inc/variable.conf": "V: 7\n",
    "inc/wants.conf": "port: $W\n",
    "inc/braces.conf": "{port: 5}\n",
    "inc/empty.conf": "",
    "inc/bad.conf": "port: [\n",
    "inc/unknown.conf": "zork: 3\n",
    **helm.FILES,
}

_VALUES = r"""
1 -1 +1 1. 1.0 .5 -.5 1.5.6 1..2 1-2 - --1 1e5 1E5 1.5e3 0x10 01 1k 1K 1kB 1kb 1ki 1kib 1kbs 1m 1g 1t 1p 1e 1eb 1b
9223372036854775807 9223372036854775808 9e -1k -0 1k, true TRUE tRue yes YES on ON off no False f t y null nil
2016-05-04T18:53:41Z 2016-05-04 2016-05-04T18:53:41 2016-13-04T18:53:41Z 2016-05-04T18:53:41+01:00 127.0.0.1:4222
127.0.0.1 1.2.3 ::1 [::1] a:b a=b a{b a} a[b a] a"b a'b "a"b (a) a(b $2a$11$abc $2b$11$abc $ $1 ${HOME} @ !x * <x>
http://x a//b a#c "a\x41b" "\x4" "\xZZ" "\\" '\n' "\u0041" "a$b" é "é" 1h 1h30m 5s -5s 1.5h 5ms 1k5 5_000 \n a\tb
a\"b 'it''s' "" '' ""x trueish true# true//c on-x truex true- onward yes.no no_ "a<b>&c" 5#c 5//c /x //x #x
""".split()

_SPACED = [
    "a b", '"a" b', "'a' 'b'", "a #c", "a // c", "t rue", "1,000", '"\\\n"', "'a\nb'", '"a\nb"', '"abc', "'abc",
    # If `)` is the last character of the file, nats-server keeps it in the text.
    "(\nabc\n)\n", "(abc\n)\n", "(abc)\n", "(\nabc\n", "(\n a b\n  c\n)\n", "(\na)\n)\n", "(a (b) c\n)\n", "(\n)\n",
    "(\n  )\n", "(\nab\n)\nport: 5", "(\nab\n) # c\nport: 5", "(\nab\n),port: 5", "(\\n\n)\n",
    "(\nab\r\n)\r\n",
]

_STRUCTURE = [
    "", "port: 4222", "port 4222\nhost h", "port=4222;host=h", "port: 4222, host: h", "{}", "{port: 4222}",
    '{"port": 4222, "host": "h"}', "foo: 1", "port", "port:", "port: ]", "port: [1,2", "port: {", "}",
    "# comment only", "// c\nport: 1 # x\nhost: h // y", "port = = 3", ": 3", "= 3", "port : : 3",
    "port: 4222 host: h", "'port': 4222", '"port" 4222', "'port'4222", '"po\\x72t": 1', "'port\n': 4",
    '"port : 4222', "po rt: 3", "port:4222", "port =4222", "port:\n4222", "port\n4222", "port :\n4222",
    "port # c\n4222", "port // c\n4222", "cluster{name: x}", "cluster\n{ name: x }", "cluster:{name: x}",
    "cluster = {name x}", "cluster {name: x, port: 5}", "cluster {name: x; port: 5}", "cluster {name: x port: 5}",
    "cluster {name: x}\nport: 5", "cluster {name: x} port: 5", "cluster {name: x}, port: 5",
    "cluster {name: x};;port: 5", "port: 5,,host: h", ",port: 5", ";port: 5", "cluster {name: x,}",
    "cluster {name: x,,}", "cluster { # c\n name: x # d\n}", "cluster { // c\n name: x // d\n}", "cluster {name: x",
    "cluster {name: x\nport", "cluster {name}", "cluster {name: x}}", "cluster {name: x}}\nzork: 3",
    "port: 5\n}\nzork: 1", "{port: 5", "{port: 5}\nhost: h", "{\nport: 5\n}\n", "  {port: 5}", "# c\n{port: 5}",
    "[1]", '"a"', '{"debug":true,"port":5}', "{'debug':true}", '{"a":null}', '{"host":null}',
    '{"port":5,"cluster":{"name":"x","routes":["nats://a:1","nats://b:2"]}}',
    "server_tags: [a b]", "server_tags: [a, b]", "server_tags: [a\nb]", "server_tags: [a,\nb,\n]",
    "server_tags: [a;b]", "server_tags: [,a]", "server_tags: [a,,b]", "server_tags: []", "server_tags: [\n]",
    "server_tags: [a # c\n b]", "server_tags: [ # c\n a]", "server_tags: ['a' 'b']", "server_tags: ['a'\n'b']",
    "server_tags: [a]]", "server_tags [a, b]", "server_tags=[a,b]", "server_tags\n[a]", "server_tags[a,b]",
    "V: 5\nport: $V", "port: $V\nV: 5", "V: 5\ncluster {port: $V}", "cluster {V: 5, port: $V}\nport: $V",
    "V: 5\ncluster {V: 6, port: $V}", "V: $V\nport: $V", 'V: 5\nport: "$V"', "V: 5", "V: 5\nW: $V\nport: $W",
    "V: [a, b]\nserver_tags: $V", "V: a\nserver_tags: [$V, b]", "V: {name: x}\ncluster: $V", "v: 5\nport: $V",
    "V: 5\nport: $V,host: h", "host: h\nserver_name: $host", "port: $FANLINE_TEST_PORT",
    "max_payload: $FANLINE_TEST_SIZE", "host: $FANLINE_TEST_NAME", "port: $FANLINE_TEST_MISSING",
    "port: 5\nport: 6", "cluster {name: x}\ncluster {port: 5}",
    "include inc/a.conf", "include 'inc/a.conf'", 'include "inc/a.conf"', "include: inc/a.conf",
    "include = inc/a.conf", "include inc/a.conf\nport: 6", "port: 6\ninclude inc/a.conf", "include inc/chain.conf",
    "include './inc/chain.conf'", "cluster { include inc/name.conf }", "cluster {\n include 'inc/name.conf'\n port: 5 }",
    "include inc/a.conf;host: h", "include inc/a.conf host: h", "include inc/a.conf # c",
    "include inc/variable.conf\nport: $V", "W: 5\ninclude inc/wants.conf", "include inc/braces.conf",
    "include inc/empty.conf", "include inc/empty.conf\nport: 4", "include inc/bad.conf", "include inc/unknown.conf",
    "include", "include\nport: 4", "includes: 4", "INCLUDE inc/a.conf", "include inc", "include $V",
    "port: 5\r\nhost: h\r\n", "\tport: 5", "port\t5", "'': 4", "port: 5 // c", "/port: 4", "/ port: 4", "//", "#",
    "$x: 5", "-: 5", "5: 5", "a.b: 5", "@: 5", "é: 5", "port: 5,", "port: 5;", "debug: true; trace: true",
]

_OPTIONS = [
    "listen: 4222", "listen: -1", "listen: 'x:y'", "listen: 1.2.3.4:55", "listen: 1.2.3.4", "listen: '4222'",
    "listen: ':4222'", "listen: '[::1]:4222'", "listen: '::1:4222'", "net: h", "PORT: 4222", "Port: 4222",
    "port: '4222'", "port: 1.5", "host: 5", "server_name: 'a b'", "server_name: ''", "client_advertise: 'a:5'",
    "http: 127.0.0.1:8222", "http: 8222", "http_port: 8222", "monitor_port: -1", "http: x", "https: 8443",
    "max_connections: -1", "max_conn: 5", "max_subscriptions: 5", "max_subs: 0", "max_payload: 1.5", "max_payload: 64MB\nmax_pending: 65MB",
    "max_control_line: 4KB", "max_control_line: 0", "max_pending: 64MB", "max_payload: '1MB'",
    "ping_interval: 5", "ping_interval: '5s'", "ping_interval: 5s", "ping_interval: '5x'", "ping_interval: '1s 2s'",
    "ping_interval: true", "ping_max: 3", "ping_max: '3'", "write_deadline: 5", "write_deadline: '1m'",
    "write_timeout: close", "write_timeout: x", "no_fast_producer_stall: true", "no_header_support: true",
    "lame_duck_duration: '10s'", "lame_duck_duration: '1m'", "lame_duck_duration: 60",
    "lame_duck_grace_period: '5s'", "lame_duck_grace_period: '-1s'", "proxy_protocol: true",
    "debug: yes", "debug: maybe", "debug: 'yes'", "debug: 1", "trace: on", "trace_verbose: true", "logtime: false",
    "logtime_utc: true", "log_file: x.log", "logfile: 'x.log'", "logfile_size_limit: 1MB", "log_size_limit: -1x",
    "logfile_max_num: 5", "syslog: false", "pid_file: x.pid", "pidfile: 5", "ports_file_dir: here",
    "prof_port: 0", "syslog: true", "remote_syslog: 'udp://127.0.0.1:514'",
    "authorization {token: t}", "authorization {user: a, password: b}", "authorization {user: a, pass: b}",
    "authorization {username: a, password: b}", "authorization {user: a, token: t}", "authorization {timeout: 1}",
    "authorization {timeout: 0.5}", "authorization {timeout: '2s'}", "authorization {timeout: x}",
    "authorization {foo: 1}", "authorization {user: 5, password: b}", "authorization {user: a, password: 123}",
    "authorization {token: 123}", "authorization: x", "authorization {user: a, password: $2a$11$abc}",
    "jetstream: true", "jetstream: false", "jetstream: enabled", "jetstream: DISABLED", "jetstream: 3", "jetstream: x",
    "jetstream []", "jetstream {}", "jetstream {foo: 1}", "jetstream {store_dir: x}\nstore_dir: y", "jetstream {store_dir: 5}",
    "jetstream: true\nstore_dir: x", "jetstream {max_mem: 1G, max_file: -1}", "jetstream {max_memory_store: '1G'}",
    "jetstream {max_mem: '1Q'}", "jetstream {max_mem: 1.5}", "jetstream {enabled: false}", "jetstream {enable: true}",
    "jetstream {domain: d}", "jetstream {domain: ''}", "jetstream {sync_interval: always}", "jetstream {sync: '10s'}",
    "jetstream {sync_interval: 10}", "jetstream {sync_interval: x}", "jetstream {strict: false}",
    "jetstream {strict: x}", "jetstream {limits {max_ack_pending: 5}}", "jetstream {limits {foo: 5}}",
    "tls {}", "tls {timeout: 2}", "tls {foo: 2}", "tls {verify: true, handshake_first: auto}", "tls: x",
    "tls {min_version: '1.3'}", "tls {min_version: '1.1'}", "allow_non_tls: true", "tls {handshake_first: '50ms'}",
    "websocket {}", "websocket {port: -1, no_tls: true}", "websocket {foo: 1}", "websocket: 5",
    "websocket {listen: '127.0.0.1:80', no_tls: true, compression: true, same_origin: true, allowed_origins: [a],"
    " handshake_timeout: '2s', jwt_cookie: x}",
    "leafnodes {listen: 127.0.0.1:-1}", "leafnodes {port: 7422}", "leafnodes {remotes: [{url: 'nats://x:1', foo: 1}]}",
    "leafnodes {port: 7422, write_deadline: '2s', write_timeout: retry}", "leafnodes {port: 7422, write_timeout: x}",
    "leafnodes {port: 7422, compression: s2_uncompressed}", "leafnodes {port: 7422, min_version: '2.7.0'}",
    "leafnodes {port: 7422, authorization {user: a, password: b, timeout: 2}}",
    "leafnodes {port: 7422, authorization {user: a, password: b, proxy_required: true}}",
    "leafnodes {port: 7422, authorization {user: a, password: b, proxy_required: x}}",
    "leafnodes {port: 7422, authorization {users: [{user: a, password: b, proxy_required: true}]}}",
    "leafnodes {remotes: [{url: 'nats://x:1', dial_timeout: '3s'}]}",
    "leafnodes {remotes: [{url: 'nats://x:1', deny_exports: ['a..b']}]}",
    "leafnodes {remotes: [{url: 'ws://x:1', proxy {url: 'http://p:3128', username: a, password: b, timeout: '5s'}}]}",
    "leafnodes {remotes: [{url: 'ws://x:1', proxy {url: 'http://p:3128', username: a}}]}",
    "leafnodes {remotes: [{url: 'ws://x:1', proxy {url: 'ftp://p:3128'}}]}",
    "leafnodes {foo: 1}", "cluster {}", "cluster {foo: x}", "cluster {name: x, listen: '0.0.0.0:6222', routes: ['nats://a:1']}",
    "cluster {port: 6222, pool_size: 3, compression: accept, ping_interval: '5s', authorization {user: a, password: b}}",
    "server_tags: a", "server_metadata {a: b}", "gateway {foo: 1}", "mqtt {foo: 1}", "zork {a: 1}",
    "max_file_store: 5", "jetstream {port: 5}", "connect_error_reports: 0",
    # Typical beginnings of configurations in Helm charts and guides.
    'port: 4222\nmonitor_port: 8222\nserver_name: nats-0\npid_file: "/var/run/nats/nats.pid"\n'
    'lame_duck_grace_period: 10s\nlame_duck_duration: 30s\njetstream {\n  max_file_store: 10Gi\n  max_memory_store: 0\n'
    '  store_dir: /data\n}\n',
    "listen: 127.0.0.1:4222\n\njetstream: {\n    store_dir: \"nats\"\n    max_mem: 1G,\n    max_file: 100G\n}\n",
    '{\n  "http_port": 8222,\n  "jetstream": {\n    "max_file_store": 10737418240,\n    "store_dir": "/data"\n  },\n'
    '  "lame_duck_duration": "30s",\n  "pid_file": "/var/run/nats/nats.pid",\n  "port": 4222\n}\n',
    "host: 127.0.0.1, port: -1, http: '127.0.0.1:-1', ports_file_dir: '.'\nserver_tags: [ a, b ]\n"
    "leafnodes { listen: '127.0.0.1:-1' }\nwebsocket { port: -1, no_tls: true }\n"
    "jetstream { store_dir: 's', strict: true, domain: d, limits { max_ack_pending: 5 } }\n",
]

_ACCOUNT_KEY = "ACFIRY65OQE7DFP5KLNS2PF2LVZMUZYJX4OZIEQ36N2IQANUB5XVYYOU"
_OPERATOR_KEY = "OCFIRY65OQE7DFP5KLNS2PF2LVZMUZYJX4OZIEQ36N2IQANUB5XVYOCS"
_CURVE_KEY = "XADQOBYHA4DQOBYHA4DQOBYHA4DQOBYHA4DQOBYHA4DQOBYHA4DQOAYA"
_USER_KEY = "UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX"
_SERVICE = f"issuer: {_ACCOUNT_KEY}, account: AUTH, auth_users: [auth]"

_CALLOUT = [
    f"accounts {{AUTH {{users: [{{user: auth, password: p}}]}}}}\nauthorization {{auth_callout {{{inner}}}}}"
    for inner in [
        _SERVICE, f"{_SERVICE}, xkey: {_CURVE_KEY}", f"{_SERVICE}, key: {_CURVE_KEY}", f"{_SERVICE}, xkey: {_ACCOUNT_KEY}",
        f"{_SERVICE}, xkey: x", f"{_SERVICE}, xkey: ''", f"{_SERVICE}, allowed_accounts: [AUTH]", f"{_SERVICE}, foo: 1",
        f"issuer: {_USER_KEY}, account: AUTH, auth_users: [auth]", "account: AUTH, auth_users: [auth]",
        f"issuer: {_ACCOUNT_KEY}, account: AUTH", f"issuer: {_ACCOUNT_KEY}, account: AUTH, auth_users: []",
        f"issuer: {_ACCOUNT_KEY}, acc: AUTH, users: [auth]", f"issuer: {_ACCOUNT_KEY}, auth_users: [auth]",
    ]
]

_PROXIES = [
    f"proxies {{trusted: [{{key: {_USER_KEY}}}]}}", f"proxies {{trusted: [{{key: {_ACCOUNT_KEY}}}]}}",
    f"proxies {{trusted: [{_USER_KEY}]}}", "proxies {trusted: [{key: foo}]}", "proxies {trusted: []}", "proxies {}",
    "proxies {foo: 1}", "proxies: 1", f"proxies {{trusted: [{{key: {_USER_KEY}}}, {{key: {_USER_KEY}}}]}}",
    "authorization {proxy_required: true, user: a, password: b}", "authorization {proxy_required: x}",
    "authorization {users: [{user: a, password: b, proxy_required: true}]}",
]

# Options that Fanline ignores, or has under another name.
_IGNORED = [
    "disable_sublist_cache: true", "disable_sublist_cache: 1", "no_sublist_cache: false", "prof_port: 6060",
    "prof_port: x", "prof_block_rate: 5", "ocsp_cache: true", "ocsp: false", "ocsp: 1", "ocsp {mode: never}",
    "write_timeout: retry", "max_payload: -1", "max_control_line: 1MB", "max_connections: -5", "max_subs: -5",
    "logfile_size_limit: -1", "logfile_max_num: -1", "feature_flags {js_ack_fc_v2: true}", "feature_flags {a: 1}",
    "gateway {name: A}", "gateway {name: A, port: 7222, gateways: [{name: B, url: 'nats://h:7222'}]}", "gateway: x",
    "gateway {port: 7222}", "gateway {name: 'a b', port: 7222}", "gateway {name: A, port: 7222, gateways: [{name: B}]}",
    "gateway {name: A, port: 7222, gateways: [{url: 'nats://h:7222'}]}", "gateway {name: A, port: 7222, gateways: 5}",
    "cluster {name: B, port: 6222}\ngateway {name: A, port: 7222}", "gateway {name: A, port: 7222}\njetstream {}",
    "gateway {name: A, listen: '127.0.0.1:-1', reject_unknown: true, connect_retries: 3, advertise: 'h:1'}",
    "gateway {name: A, port: 7222, authorization {user: a, password: b, timeout: 2}, write_deadline: '2s'}",
    "gateway {name: A, port: 7222, gateways: [{name: B, urls: ['nats://u:p@h:7222'], foo: 1}]}",
    "cluster: x", "resolver: MEMORY", "resolver: mem", "accounts_resolver: MEMORY", "root_operators: []",
    "root_operator: []", f"trusted_keys: {_OPERATOR_KEY}", f"trusted: [{_OPERATOR_KEY}]", "trusted_keys: x",
    f"trusted_keys: {_OPERATOR_KEY}\nauthorization {{users: [{{user: a, password: b}}]}}",
    f"trusted_keys: {_OPERATOR_KEY}\nauthorization {{token: t}}",
    "jetstream {max_buffered_size: 1GB}", "jetstream {max_buffered_size: '1G'}", "jetstream {max_buffered_size: x}",
    "jetstream {max_buffered_msgs: 5}", "jetstream {max_buffered_msgs: '5'}", "jetstream {extension_hint: no_extend}",
    "jetstream {extension_hint: 5}", "jetstream {unique_tag: az}", "jetstream {max_outstanding_catchup: 1G}",
    "jetstream {request_queue_limit: 5}", "jetstream {info_queue_limit: x}", "jetstream {meta_compact: 5}",
    "jetstream {meta_compact: -1}", "jetstream {meta_compact_size: '1G'}", "jetstream {meta_compact_size: -1}",
    "jetstream {meta_compact_sync: true}", "jetstream {meta_compact_sync: 1}", "jetstream {max_concurrent_io: 8}",
    "jetstream {max_concurrent_io: 3}", "accounts {A {jetstream {memory: 5, store: 6}}}",
    "tls {allow_insecure_cipher_suites: true}", "tls {cert_match: x}", "tls {cert_match_skip_invalid: true}",
    "tls {ca_certs_match: [a]}", "tls {certificates: []}", "tls {handshake_first: 'on'}",
    "tls {handshake_first: auto_fallback}", "tls {connection_rate_limit: -1}", "tls {insecure: true}",
    "tls {cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}",
    "tls {cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, TLS_AES_128_GCM_SHA256]}",
    "tls {allow_insecure_cipher_suites: true, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA, TLS_AES_128_GCM_SHA256]}",
    "tls {curve_preferences: [CurveP521, CurveP256]}",
    "leafnodes {remotes: [{url: 'nats://h:1', tls {insecure: true}}]}", "resolver_tls {insecure: true}",
    "leafnodes {remotes: [{url: '127.0.0.1:9'}]}", "leafnodes {remotes: [{url: 'leaf://127.0.0.1'}]}", "leafnodes {remotes: [{url: 'TLS://h:1'}]}",
    "leafnodes {remotes: [{urls: ['leaf://a', 'tcp://b:1', 'http://c']}]}", "leafnodes {remotes: [{url: ['leaf://a']}]}",
    "leafnodes {remotes: [{url: 'nats://h:1', dont_randomize: true, ws_compress: true}]}",
    "leafnodes {remotes: [{url: 'nats://h:1', websocket_compress: true}]}",
    "leafnodes {port: -1, leafnode_advertise: 'x:5', minimum_version: 2.8.0}",
    "leafnodes {port: -1, compression {mode: s2_auto, rtt: [10ms]}}",
    "websocket {port: -1, tls {}, no_tls: true}", "websocket {port: -1, no_tls: true, compress: true}",
    "mqtt {port: -1, api_timeout: '5s', consumer_auto_cleanup: '5s', max_ack_pending: 0}\nserver_name: x\njetstream {}",
    f"proxies {{trusted: [{{public_key: {_USER_KEY}}}]}}",
    f"accounts {{AUTH {{users: [{{user: auth, password: p}}]}}}}\nauthorization {{auth_hook {{{_SERVICE}}}}}",
    # The configuration of a leaf node in KeyValueMirrorCrossDomains of nats.go and nats.c, with its superfluous
    # `}`.
    "server_name: LEAF\nlisten: 127.0.0.1:-1\njetstream: { domain:LEAF }\nleafnodes {\n remotes = [ { url: "
    "\"leaf://127.0.0.1\" } ]\n}\n}",
]

CASES = list(
    dict.fromkeys(
        [f"host: {value}" for value in [*_VALUES, *_SPACED]]
        + [f"max_connections: {value}" for value in _VALUES]
        + _STRUCTURE
        + _OPTIONS
        + _CALLOUT
        + _PROXIES
        + _IGNORED
        + access.CASES
        + blocks.CASES
        + helm.CASES
    )
)
