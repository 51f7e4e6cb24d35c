"""Configurations about which Fanline decides differently on purpose, with the reasons. An unsupported option
causes a warning; it is refused only if ignoring it would make the server less safe."""

AT_THE_CHECK = "nats-server finds out only when it starts"
UNSUPPORTED = "Fanline does not have it, and says so instead of ignoring it"
TYPING = "it was certainly not meant"
ONE_MEANING = "it can only mean one thing"
NO_CERTIFICATE = "both sides of a route by TLS show a certificate"
WARNING = "nats-server starts with it and warns, but -t refuses it; Fanline warns in both"
TWICE = "nats-server takes one of the two by chance, or mixes them"

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
    "leafnodes { remotes: [ { urls: ['ws://a:1','nats://b:1'] } ] }": AT_THE_CHECK,
    "websocket {listen: '127.0.0.1:80', no_tls: true, compression: true, same_origin: true, allowed_origins: [a],"
    " handshake_timeout: '2s', jwt_cookie: x}": AT_THE_CHECK,
    "websocket {port: -1, no_tls: true, jwt_cookie: a, user_cookie: b, pass_cookie: c, token_cookie: d}": AT_THE_CHECK,
    "websocket {port: -1, no_tls: true, jwt_cookie: 'a b'}": AT_THE_CHECK,
    "leafnodes {remotes: [{url: '127.0.0.1:9'}]}": ONE_MEANING,
    "max_payload: 10e": TYPING,
    "host: a\0": TYPING,
    "ping_interval: '-1s'": TYPING,
    "websocket {port: 80}": AT_THE_CHECK,
    "websocket {port: 80, no_tls: false}": AT_THE_CHECK,
    "http: 8222\nhttps: 8223": AT_THE_CHECK,
    "no_auth_user: x": AT_THE_CHECK,
    "authorization {user: a, password: b}\nno_auth_user: a": AT_THE_CHECK,
    "mqtt {port: 1883, authorization {user: a, password: b}}\njetstream {}\n"
    "authorization {users: [{user: c, password: d}]}": AT_THE_CHECK,
    "ocsp: true": UNSUPPORTED,
    "ocsp {mode: must}": UNSUPPORTED,
    "tls {ocsp_peer: true}": UNSUPPORTED,
    "jetstream {tpm {}}": UNSUPPORTED,
    "cluster { name: x, port: -1, tls {} }": NO_CERTIFICATE,
    "cluster { name: x, port: -1, authorization {user: a, password: b, permissions {import: a, export: b}} }": WARNING,
    "gateway {name: A}": AT_THE_CHECK,
    "gateway {port: 7222}": AT_THE_CHECK,
    "gateway {name: A, port: 7222, gateways: [{name: B}]}": AT_THE_CHECK,
    "gateway {name: A, port: 7222, gateways: [{url: 'nats://h:7222'}]}": AT_THE_CHECK,
    "cluster {name: B, port: 6222}\ngateway {name: A, port: 7222}": AT_THE_CHECK,
    "gateway {name: A, port: 7222}\njetstream {}": UNSUPPORTED,
    "tls {timeout: 2}\nTLS {timeout: 3}": TWICE,
    "websocket {port: -1, no_tls: true}\nws {same_origin: true}": TWICE,
}
