//! `/`: links to all endpoints.

use hyper::StatusCode;

use super::answer::Answer;

const PAGE: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Fanline</title>
<style>
body { font-family: system-ui, sans-serif; margin: 2rem }
li { margin: .4rem 0 }
code { color: #777 }
</style>
</head>
<body>
<h1>Fanline</h1>
<ul>
<li><a href="./varz">Server</a> <code>/varz</code></li>
<li><a href="./connz">Connections</a> <code>/connz</code></li>
<li><a href="./subsz">Subscriptions</a> <code>/subsz</code></li>
<li><a href="./healthz">Health</a> <code>/healthz</code></li>
<li><a href="./accountz">Accounts</a> <code>/accountz</code></li>
<li><a href="./accstatz">Account statistics</a> <code>/accstatz</code></li>
<li><a href="./routez">Routes</a> <code>/routez</code></li>
<li><a href="./leafz">Leaf nodes</a> <code>/leafz</code></li>
<li><a href="./gatewayz">Gateways</a> <code>/gatewayz</code></li>
<li><a href="./jsz">JetStream</a> <code>/jsz</code></li>
<li><a href="./raftz">Raft groups</a> <code>/raftz</code></li>
<li><a href="./ipqueuesz">Queues within the server</a> <code>/ipqueuesz</code></li>
<li><a href="./metrics">Prometheus metrics</a> <code>/metrics</code></li>
</ul>
</body>
</html>
"#;

/// Returns the page, with links below `base`.
pub(super) fn answer(base: &str) -> Answer {
    Answer {
        status: StatusCode::OK,
        content_type: "text/html; charset=utf-8",
        body: match base {
            "" => PAGE.into(),
            base => PAGE.replace("\"./", &format!("\"{base}/")),
        },
    }
}
