"""Options that affect access, in pairs and larger combinations. CERTS is the folder with certificates."""

_CERT = 'cert_file: "CERTS/server.pem", key_file: "CERTS/server.key"'
_CA = 'ca_file: "CERTS/ca.pem"'


def _tls(more: str = "") -> str:
    return f"tls {{ {_CERT}\n {more} }}"


_VERIFY = _tls(f"{_CA}, verify: true")
_MAP = _tls(f"{_CA}, verify_and_map: true")
_PINNED = _tls(f'{_CA}, verify: true, pinned_certs: ["PIN"]')
_TLS = {
    "no tls": "",
    "tls": _tls(),
    "verify": _VERIFY,
    "verify_and_map": _MAP,
    "verify and no map": _tls(f"{_CA}, verify: true, verify_and_map: false"),
    "a CA without verify": _tls(_CA),
    "handshake_first": _tls("handshake_first: true"),
    "handshake_first: auto": _tls("handshake_first: auto"),
    "pinned certificates": _PINNED,
    "pins without verify": _tls('pinned_certs: ["PIN"]'),
}

_USERS = "authorization { users: [ {user: a, password: b}, {user: c, password: d} ] }"
_NO_PASSWORD = "authorization { users: [ {user: a}, {user: c, password: d} ] }"
_KEY = "UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX"
_OPERATOR = "OCFIRY65OQE7DFP5KLNS2PF2LVZMUZYJX4OZIEQ36N2IQANUB5XVYOCS"
_WHO = {
    "nobody": "",
    "a token": "authorization { token: t }",
    "one user": "authorization { user: a, password: b }",
    "one user, no_auth_user": "authorization { user: a, password: b }\nno_auth_user: a",
    "users": _USERS,
    "users, no_auth_user": f"{_USERS}\nno_auth_user: c",
    "no users": "authorization { users: [] }",
    "a user without password": _NO_PASSWORD,
    "an nkey": f"authorization {{ users: [ {{nkey: {_KEY}}} ] }}",
    "accounts": "accounts { A { users: [ {user: a, password: b} ] }, B { users: [ {user: c, password: d} ] } }",
    "accounts without users": "accounts { A {} }",
    "the system account alone": "accounts { $SYS { users: [ {user: a, password: b} ] } }",
    "the system account without users": "accounts { $SYS {} }",
    "accounts, no_auth_user": "accounts { A { users: [ {user: a, password: b} ] }, B { users: [ {user: c, password: d} "
    "] } }\nno_auth_user: c",
    "kinds of connections": "authorization { users: [ {user: a, password: b, allowed_connection_types: [WEBSOCKET]}, "
    "{user: c, password: d, allowed_connection_types: [MQTT, LEAFNODE]} ] }",
    "kinds of connections, no_auth_user": "authorization { users: [ {user: a, password: b, allowed_connection_types: "
    "[WEBSOCKET]}, {user: c, password: d} ] }\nno_auth_user: a",
    "a proxy": "authorization { users: [ {user: a, password: b, proxy_required: true}, {user: c, password: d} ] }",
    "trusted keys": f"trusted_keys: {_OPERATOR}",
    "trusted keys, users": f"trusted_keys: {_OPERATOR}\n{_USERS}",
}
_WEBSOCKET = {
    "nothing": "",
    "no_tls: false": "no_tls: false",
    "no_tls": "no_tls: true",
    "tls": _tls(),
    "tls, no_tls": f"{_tls()}\nno_tls: true",
    "no_tls, tls": f"no_tls: true\n{_tls()}",
    "verify": _VERIFY,
    "verify_and_map": _MAP,
    "pinned certificates": _PINNED,
    "one user": "no_tls: true, authorization { user: w, password: w }",
    "a token": "no_tls: true, authorization { token: t }",
    "no_auth_user": "no_tls: true, no_auth_user: c",
    "allowed_origins": 'no_tls: true, allowed_origins: ["https://good.example"]',
    "no allowed_origins": "no_tls: true, allowed_origins: []",
    "same_origin": "no_tls: true, same_origin: true",
    "same_origin, allowed_origins": 'no_tls: true, same_origin: true, allowed_origins: ["https://evil.example"]',
}
_MQTT = {
    "nothing": "",
    "tls": _tls(),
    "verify": _VERIFY,
    "verify_and_map": _MAP,
    "one user": "authorization { user: w, password: w }",
    "a token": "authorization { token: t }",
    "no_auth_user": "no_auth_user: c",
}
_LEAFS = {
    "nothing": "",
    "tls": _tls(),
    "verify": _VERIFY,
    "verify_and_map": _MAP,
    "handshake_first": _tls("handshake_first: true"),
    "pinned certificates": _PINNED,
    "one user": "authorization { user: w, password: w }",
    "users": "authorization { users: [ {user: w, password: w} ] }",
    "no users": "authorization { users: [] }",
    "verify_and_map, users": f"{_MAP}\nauthorization {{ users: [ {{user: a, password: b}} ] }}",
    "an nkey": f"authorization {{ nkey: {_KEY} }}",
    "proxies of users": "authorization { users: [ {user: w, password: w, proxy_required: true} ] }",
    "a proxy of one user": "authorization { user: w, password: w, proxy_required: true }",
}
_PERMISSIONS = {
    "nothing": "",
    "allow": 'publish: ["ok.>"], subscribe: ["ok.>"]',
    "deny": 'publish: {deny: "deny.>"}, subscribe: {deny: "deny.>"}',
    "both": 'publish: {allow: ["ok.>", "deny.>"], deny: "deny.>"}, subscribe: {allow: ">", deny: ["deny.a"]}',
    "empty lists": "publish: [], subscribe: {allow: [], deny: []}",
    "allow nothing, deny": 'publish: {allow: [], deny: ["deny.>"]}',
    "responses": "allow_responses: true",
    "responses, deny": 'allow_responses: true, publish: {deny: "deny.>"}',
    "no responses": "allow_responses: false",
    "a queue": 'subscribe: "ok.a q"',
}


def _websocket(inside: str) -> str:
    return f'websocket {{ listen: "127.0.0.1:WEBSOCKET_PORT"\n {inside} }}'


def _mqtt(inside: str) -> str:
    return f'server_name: x\njetstream {{ store_dir: "STORE" }}\nmqtt {{ listen: "127.0.0.1:MQTT_PORT"\n {inside} }}'


def _leafs(inside: str) -> str:
    return f'leafnodes {{ listen: "127.0.0.1:LEAF_PORT"\n {inside} }}'


def _all():
    for tls, block in _TLS.items():
        for who in ("nobody", "a token", "users"):
            yield f"{tls} | {who}", f"{block}\n{_WHO[who]}"
        if block:
            for who in ("nobody", "users, no_auth_user"):
                yield f"{tls}, allow_non_tls | {who}", f"{block}\nallow_non_tls: true\n{_WHO[who]}"
            yield f"https | {tls}", f'{block}\nhttps: "127.0.0.1:HTTP_PORT"'
    for who, block in _WHO.items():
        yield f"no tls | {who}", block
        yield f"verify_and_map | {who}", f"{_MAP}\n{block}"
        for inside in ("verify_and_map", "no_auth_user"):
            yield f"websocket: {inside} | {who}", f"{_websocket(_WEBSOCKET[inside])}\n{block}"
        # Accounts without JetStream refuse MQTT clients. nats-server does not start if no account has JetStream.
        if "accounts" not in who and "trusted" not in who:
            yield f"mqtt: verify_and_map | {who}", f"{_mqtt(_MAP)}\n{block}"
        yield f"leaf nodes: verify_and_map | {who}", f"{_leafs(_MAP)}\n{block}"
    for inside, block in _WEBSOCKET.items():
        for who in ("nobody", "users"):
            yield f"websocket: {inside} | {who}", f"{_websocket(block)}\n{_WHO[who]}"
    for inside, block in _MQTT.items():
        for who in ("nobody", "users"):
            yield f"mqtt: {inside} | {who}", f"{_mqtt(block)}\n{_WHO[who]}"
        for websocket in ("no_tls", "verify", "verify_and_map"):
            both = f"{_mqtt(block)}\n{_websocket(_WEBSOCKET[websocket])}"
            yield f"mqtt: {inside} | websocket: {websocket} | a user without password", f"{both}\n{_NO_PASSWORD}"
    for inside, block in _LEAFS.items():
        for who in ("nobody", "users, no_auth_user"):
            yield f"leaf nodes: {inside} | {who}", f"{_leafs(block)}\n{_WHO[who]}"
        for websocket in ("no_tls", "verify_and_map", "no_auth_user"):
            both = f"{_leafs(block)}\n{_websocket(_WEBSOCKET[websocket])}\n{_USERS}"
            yield f"leaf nodes: {inside} | websocket: {websocket} | users", both
    for name, inside in _PERMISSIONS.items():
        user = f"{{user: a, password: b, permissions {{ {inside} }}}}"
        yield f"permissions: {name}", f"authorization {{ users: [ {user}, {{user: c, password: d}} ] }}"
        yield f"permissions: {name} | no_auth_user", f"no_auth_user: a\nauthorization {{ users: [ {user} ] }}"
        yield f"permissions: {name} | default_permissions", (
            f"authorization {{ default_permissions {{ {inside} }}, users: [ {{user: a, password: b}}, "
            f'{{user: c, password: d, permissions {{ publish: "x" }}}} ] }}'
        )
        yield f"permissions: {name} | of an account", (
            f"accounts {{ A {{ default_permissions {{ {inside} }}, users: [ {{user: a, password: b}} ] }} }}"
        )
        yield f"permissions: {name} | one user", f"authorization {{ permissions {{ {inside} }}, user: a, password: b }}"
    yield from _TWICE.items()


_TWICE = {
    "written twice: authorization": "authorization { user: a, password: b }\nauthorization { user: c, password: d }",
    "written twice: authorization, then none": "authorization { user: a, password: b }\nauthorization {}",
    "written twice: users": "authorization { users: [ {user: a, password: b} ], users: [ {user: c, password: d} ] }",
    "written twice: tls": f"{_VERIFY}\n{_tls()}",
    "written twice: websocket": f"{_websocket(_tls())}\n{_websocket('no_tls: true')}",
    "null: password": "authorization { user: a, password: null }",
    "null: users": "authorization { users: null }",
    "null: no_auth_user": f"{_USERS}\nno_auth_user: null",
    "empty: no_auth_user": f'{_USERS}\nno_auth_user: ""',
    "empty: user": 'authorization { user: "", password: "" }',
    "empty: token": 'authorization { token: "" }',
    "empty: pinned_certs": f"tls {{ {_CERT}, pinned_certs: [] }}",
    "empty: trusted proxies": "proxies { trusted: [] }\nauthorization { users: [ {user: a, password: b, proxy_required: "
    "true} ] }",
    "http and https": f'{_tls()}\nhttp: "127.0.0.1:HTTP_PORT"\nhttps: "127.0.0.1:HTTP_PORT"',
}
PAIRS = dict(_all())

# Combinations that nats-server accepts and Fanline refuses to start with.
REFUSED_HERE = {
    # The configured user has no effect together with trusted keys.
    "websocket: no_auth_user | trusted keys, users",
}
_HASH = "$2a$11$3kIDaCxw.Glsl1.u5nKa6eUnNDLV5HV9tIuUp7EHhMt6Nm9myW1aS"
# Configurations for which both servers must log the same warnings.
WARNED = {
    "nothing": "debug: false",
    "one user": _WHO["one user"],
    "one user, a hash": f'authorization {{ user: a, password: "{_HASH}" }}',
    "users": _USERS,
    "users, a hash": f'authorization {{ users: [ {{user: a, password: "{_HASH}"}} ] }}',
    "a user without password": _NO_PASSWORD,
    "certificates": f"{_MAP}\nauthorization {{ users: [ {{user: a}} ] }}",
    "a token": _WHO["a token"],
    "an nkey": _WHO["an nkey"],
    "accounts": _WHO["accounts"],
    "websocket in clear": _websocket("no_tls: true"),
    "websocket by TLS": _websocket(_tls()),
}
# Combinations with which Fanline refuses more clients than nats-server.
STRICTER = {
    # In nats-server, permissions next to a single user have no effect.
    *(f"permissions: {name} | one user" for name in _PERMISSIONS),
    # nats-server's monitoring requests no client certificate.
    *(f"https | {tls}" for tls in ("verify", "verify_and_map", "verify and no map", "pinned certificates")),
}
