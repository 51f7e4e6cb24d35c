//! Who may connect, and what they may do.

use fanline_engine::auth::GLOBAL_ACCOUNT;
use serde_json::{Value as Json, json};

use super::duration_text;
use crate::config::table::Kind::{Any, Block, Blocks, Bool, Duration, Integer, Size, Text, Texts};
use crate::config::table::{Entry, within, works};
use crate::config::value::Value;
use crate::config::{Loaded, access};

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "authorization",
        Block,
        |draft, given| {
            draft.has_authorization = true;
            given.map().map(drop)
        },
        |_| Json::Null,
    )
    .reloads()
    .help("Who may connect."),
    works(
        "authorization.user",
        Text,
        |draft, given| {
            draft.user = given.some_text()?;
            Ok(())
        },
        |_| Json::Null,
    )
    .alias(&["username"])
    .flags("--user")
    .reloads()
    .help("The one user."),
    works(
        "authorization.password",
        Text,
        |draft, given| {
            draft.password = given.some_text()?;
            Ok(())
        },
        |_| Json::Null,
    )
    .alias(&["pass"])
    .flags("--pass")
    .secret()
    .reloads()
    .help("Its password, in clear or as bcrypt writes it."),
    works(
        "authorization.token",
        Text,
        |draft, given| {
            draft.token = given.some_text()?;
            Ok(())
        },
        |loaded| access::show(&loaded.access)["token"].take(),
    )
    .flags("--auth")
    .secret()
    .reloads()
    .help("One token for all, in clear or as bcrypt writes it."),
    works(
        "authorization.timeout",
        Any,
        |draft, given| {
            // None at all is the default, as in nats-server.
            draft.auth_timeout = Some(super::tls::timeout(given)?).filter(|time| !time.is_zero());
            Ok(())
        },
        |loaded| duration_text(loaded.options.limits.auth_timeout),
    )
    .default("2s; with TLS `tls.timeout` and a second")
    .reloads()
    .help("How long a client may take to say who it is: seconds or a duration."),
    works(
        "authorization.users",
        Blocks,
        |draft, given| {
            let users = access::users(given)?;
            let global = draft.loaded.access.account_mut(GLOBAL_ACCOUNT);
            global.users.extend(users);
            Ok(())
        },
        |loaded| global(loaded, "users"),
    )
    .reloads()
    .help("Several users."),
    within("authorization.users.user", Text).alias(&["username"]).help("The name."),
    within("authorization.users.password", Text)
        .alias(&["pass"])
        .secret()
        .help("The password, in clear or as bcrypt writes it."),
    within("authorization.users.nkey", Text).help("The public key of one who signs instead."),
    within("authorization.users.permissions", Block)
        .alias(&["permission", "authorization"])
        .like("authorization.default_permissions")
        .help("What the user may do."),
    within("authorization.users.allowed_connection_types", Texts)
        .alias(&["connection_types", "clients"])
        .limit("STANDARD, WEBSOCKET, LEAFNODE, LEAFNODE_WS, MQTT, MQTT_WS, IN_PROCESS")
        .default("all")
        .help("How the user may connect."),
    within("authorization.users.proxy_required", Bool)
        .default("false")
        .help("Only through a trusted proxy; see `proxies`."),
    works(
        "authorization.default_permissions",
        Block,
        |draft, given| {
            let permissions = access::permissions(given)?;
            let global = draft.loaded.access.account_mut(GLOBAL_ACCOUNT);
            global.default_permissions = Some(permissions);
            Ok(())
        },
        |loaded| global(loaded, "default_permissions"),
    )
    .alias(&["default_permission", "permissions"])
    .reloads()
    .help("What users without permissions of their own may do."),
    within("authorization.default_permissions.publish", Any)
        .alias(&["pub", "import"])
        .default("everything")
        .help("Subjects, or `{ allow: [ … ], deny: [ … ] }`; what is denied is denied."),
    within("authorization.default_permissions.publish.allow", Texts).help("What is allowed."),
    within("authorization.default_permissions.publish.deny", Texts).help("What is denied."),
    within("authorization.default_permissions.subscribe", Any)
        .alias(&["sub", "export"])
        .like("authorization.default_permissions.publish")
        .default("everything")
        .help("The same for subscriptions; `\"subject queue\"` is for members of that queue group."),
    within("authorization.default_permissions.allow_responses", Any)
        .alias(&["publish_allow_responses"])
        .default("false")
        .help("To publish to the reply subjects of what was received: `true`, or a block."),
    within("authorization.default_permissions.allow_responses.max", Integer)
        .alias(&["max_msgs", "max_messages", "max_responses"])
        .default("1")
        .help("How often."),
    within("authorization.default_permissions.allow_responses.expires", Duration)
        .alias(&["expiration", "ttl"])
        .default("2m")
        .help("For how long."),
    works(
        "authorization.auth_callout",
        Block,
        |draft, given| {
            draft.loaded.access.callout = Some(access::callout(given)?);
            Ok(())
        },
        |loaded| access::show(&loaded.access)["auth_callout"].take(),
    )
    .alias(&["auth_hook"])
    .reloads()
    .help("A service that decides who may connect."),
    within("authorization.auth_callout.issuer", Text)
        .help("The public key of the account that signs its answers."),
    within("authorization.auth_callout.account", Text)
        .alias(&["acc"])
        .default("$G")
        .help("The account that it is in."),
    within("authorization.auth_callout.auth_users", Texts)
        .alias(&["users"])
        .help("Users about whom it is not asked: itself."),
    within("authorization.auth_callout.allowed_accounts", Texts)
        .default("all")
        .help("Accounts in which it may put users, and about whose users it is asked."),
    within("authorization.auth_callout.xkey", Text)
        .alias(&["key"])
        .help("The public key (`X…`) that requests are sealed for."),
    works(
        "authorization.proxy_required",
        Bool,
        |draft, given| {
            draft.loaded.access.proxy_required = given.boolean()?;
            Ok(())
        },
        |loaded| json!(loaded.access.proxy_required),
    )
    .default("false")
    .reloads()
    .help("Everybody has to come through a trusted proxy; see `proxies`."),
    works(
        "proxies",
        Block,
        |draft, given| {
            draft.loaded.access.proxies = access::proxies(given)?;
            Ok(())
        },
        |loaded| access::show(&loaded.access)["proxies"].take(),
    )
    .reloads()
    .help("Proxies that are believed when they sign the nonce for a client (`proxy_sig`)."),
    within("proxies.trusted", Blocks).help("Their keys."),
    within("proxies.trusted.key", Text)
        .alias(&["public_key"])
        .help("The public key of one."),
    works(
        "no_auth_user",
        Text,
        |draft, given| {
            draft.loaded.access.no_auth_user = given.some_text()?;
            Ok(())
        },
        |loaded| json!(loaded.access.no_auth_user),
    )
    .reloads()
    .help("The user that those are who show nothing."),
    works(
        "system_account",
        Text,
        |draft, given| {
            draft.loaded.access.system_account = given.some_text()?;
            Ok(())
        },
        |loaded| json!(loaded.access.system_account),
    )
    .alias(&["system"])
    .default("$SYS")
    .help("The account of the server itself."),
    works(
        "no_system_account",
        Bool,
        |draft, given| {
            draft.no_system_account = given.boolean()?;
            Ok(())
        },
        |loaded| json!(loaded.options.no_system_account),
    )
    .alias(&["no_system", "no_sys_acc"])
    .default("false")
    .help("Nothing is told or answered in the system account, unless the configuration names one or has users for it."),
    works(
        "mappings",
        Block,
        |draft, given| {
            let mappings = access::mappings(given)?;
            draft.loaded.access.account_mut(GLOBAL_ACCOUNT).mappings = mappings;
            Ok(())
        },
        |loaded| global(loaded, "mappings"),
    )
    .alias(&["maps"])
    .reloads()
    .help("Other names for what is published outside of accounts."),
    within("mappings.*", Any).help("One name, or a list of those it may become."),
    within("mappings.*.destination", Text).alias(&["dest"]).help("A name, with `$1` and so on."),
    within("mappings.*.weight", Any).default("100%").help("In how many cases of a hundred."),
    within("mappings.*.cluster", Text).help("Only in this cluster."),
    works(
        "accounts",
        Any,
        |draft, given| {
            match given.node.value {
                Value::Map(_) | Value::List(_) => {}
                // nats-server takes it for none.
                _ => return Ok(()),
            }
            let accounts = access::accounts(given)?;
            draft.loaded.access.accounts.extend(accounts);
            Ok(())
        },
        |loaded| {
            let mut accounts = access::show(&loaded.access)["accounts"].take();
            // Its users are those outside of accounts.
            if let Json::Object(accounts) = &mut accounts {
                accounts.remove(GLOBAL_ACCOUNT);
            }
            accounts
        },
    )
    .reloads()
    .help("Accounts: spaces of subjects that know nothing of each other. A block of blocks, or names."),
    within("accounts.*", Block).help("One account."),
    within("accounts.*.nkey", Text).help("Its public key."),
    within("accounts.*.users", Blocks).like("authorization.users").help("Its users."),
    within("accounts.*.default_permissions", Block)
        .like("authorization.default_permissions")
        .help("What users without permissions of their own may do."),
    within("accounts.*.jetstream", Any).help("Its streams: `enabled`, or a block of limits."),
    within("accounts.*.jetstream.max_memory", Size)
        .alias(&["max_mem", "mem", "memory"])
        .help("Bytes in memory."),
    within("accounts.*.jetstream.max_file", Size)
        .alias(&["max_store", "max_disk", "store", "disk"])
        .help("Bytes on disk."),
    within("accounts.*.jetstream.max_streams", Integer).alias(&["streams"]).help("Streams."),
    within("accounts.*.jetstream.max_consumers", Integer)
        .alias(&["consumers"])
        .help("Consumers of one stream."),
    within("accounts.*.jetstream.max_bytes_required", Bool)
        .alias(&["max_stream_bytes", "max_bytes"])
        .help("Streams must say how many bytes they take."),
    within("accounts.*.jetstream.mem_max_stream_bytes", Size)
        .alias(&["memory_max_stream_bytes"])
        .help("Bytes of one stream in memory."),
    within("accounts.*.jetstream.disk_max_stream_bytes", Size)
        .alias(&["store_max_stream_bytes"])
        .help("Bytes of one stream on disk."),
    within("accounts.*.jetstream.max_ack_pending", Integer).help("Records of a consumer on their way."),
    within("accounts.*.jetstream.cluster_traffic", Text).help("For clusters."),
    within("accounts.*.limits", Block).help("What its clients may use together; -1 is no limit."),
    within("accounts.*.limits.max_connections", Integer).alias(&["max_conn"]).help("Connections."),
    within("accounts.*.limits.max_subscriptions", Integer).alias(&["max_subs"]).help("Subscriptions."),
    within("accounts.*.limits.max_payload", Size).alias(&["max_pay"]).help("Bytes of a message."),
    within("accounts.*.limits.max_leafnodes", Integer).alias(&["max_leafs"]).help("Leaf nodes."),
    within("accounts.*.exports", Blocks).help("What others may import."),
    within("accounts.*.exports.stream", Text).help("A filter that others may subscribe to."),
    within("accounts.*.exports.service", Text).help("A filter that others may send requests to."),
    within("accounts.*.exports.accounts", Texts).default("all").help("Who may."),
    within("accounts.*.exports.account_token_position", Integer)
        .help("The token, from 1, that must be the importer's name."),
    within("accounts.*.exports.response", Text)
        .alias(&["response_type"])
        .default("single")
        .limit("`single`, `stream`, `chunked`")
        .help("How many answers a request gets."),
    within("accounts.*.exports.response_threshold", Duration)
        .alias(&["threshold", "response_max_time", "response_time"])
        .help("How long an answer may take."),
    within("accounts.*.exports.latency", Any).help("Where it is told how long answers took."),
    within("accounts.*.exports.latency.subject", Text).help("The subject of the reports."),
    within("accounts.*.exports.latency.sampling", Any).default("100%").help("Of how many requests."),
    within("accounts.*.exports.allow_trace", Bool).default("false").help("Traces go on beyond it."),
    within("accounts.*.imports", Blocks).help("What it has from others."),
    within("accounts.*.imports.stream", Block).like("accounts.*.imports.service").help("A stream."),
    within("accounts.*.imports.service", Block).help("A service."),
    within("accounts.*.imports.service.account", Text).help("Whose it is."),
    within("accounts.*.imports.service.subject", Text).help("The filter there."),
    within("accounts.*.imports.to", Text).help("The filter here."),
    within("accounts.*.imports.prefix", Text).help("A first token here; as `to`."),
    within("accounts.*.imports.share", Bool).default("false").help("Who answers is told who asks."),
    within("accounts.*.imports.allow_trace", Bool).default("false").help("Traces go on beyond it."),
    within("accounts.*.mappings", Block).alias(&["maps"]).like("mappings").help("Other names."),
    within("accounts.*.msg_trace", Any).alias(&["trace_dest"]).help("Where traces go."),
    within("accounts.*.msg_trace.dest", Text).help("The subject."),
    within("accounts.*.msg_trace.sampling", Any).help("Of how many messages."),
];

/// What is said outside of accounts is said of `$G`.
fn global(loaded: &Loaded, key: &str) -> Json {
    access::show(&loaded.access)["accounts"][GLOBAL_ACCOUNT][key].take()
}
