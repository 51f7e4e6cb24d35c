"""Where Fanline decides otherwise on purpose, and why."""

AT_THE_CHECK = "nats-server finds out only when it starts"
UNSUPPORTED = "Fanline does not have it, and says so instead of ignoring it"
TYPING = "it was certainly not meant"

DIFFERENCES = {
    "port: 70000": AT_THE_CHECK,
    "port: -3": AT_THE_CHECK,
    "listen: 0.0.0.0:70000": AT_THE_CHECK,
    "websocket {port: 1, no_tls: true, authorization {token: t}}\n"
    "authorization {users: [{user: a, password: b}]}": AT_THE_CHECK,
    "leafnodes { port: -1, authorization {user: a, password: b, account: A} }": AT_THE_CHECK,
    "leafnodes { remotes: [ { url: 'nats://127.0.0.1:9', local: A } ] }": AT_THE_CHECK,
    "default_js_domain { A: hub }": AT_THE_CHECK,
    "default_js_domain { A: hub }\naccounts { A {jetstream: enabled} }\njetstream {}": AT_THE_CHECK,
    "leafnodes { remotes: [ { url: 'nats://127.0.0.1:9', credentials: x.creds } ] }": AT_THE_CHECK,
    "leafnodes { remotes: [ { url: 'nats://127.0.0.1:9', creds: x.creds } ] }": AT_THE_CHECK,
    "leafnodes { remotes: [ { url: 'ftp://a' } ] }": AT_THE_CHECK,
    "leafnodes { remotes: [ { urls: ['ws://a:1','nats://b:1'] } ] }": AT_THE_CHECK,
    "websocket {listen: '127.0.0.1:80', no_tls: true, compression: true, same_origin: true, allowed_origins: [a],"
    " handshake_timeout: '2s', jwt_cookie: x}": AT_THE_CHECK,
    "websocket {port: -1, no_tls: true, jwt_cookie: a, user_cookie: b, pass_cookie: c, token_cookie: d}": AT_THE_CHECK,
    "websocket {port: -1, no_tls: true, jwt_cookie: 'a b'}": AT_THE_CHECK,
    "max_payload: -1": "a server that takes messages of any size has no memory left sooner or later",
    "max_payload: 10e": TYPING,
    "max_connections: -1k": TYPING,
    "host: a\0": TYPING,
    "ping_interval: '-1s'": TYPING,
    "write_timeout: retry": UNSUPPORTED,
    "leafnodes {remotes: [{url: 'nats://h:1', tls {insecure: true}}]}": UNSUPPORTED,
    "resolver_tls {insecure: true}": UNSUPPORTED,
    "gateway { name: A }": UNSUPPORTED,
    "jetstream { unique_tag: az }": UNSUPPORTED,
    "prof_port: 6060": UNSUPPORTED,
}
