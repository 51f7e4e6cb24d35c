//! The page's files in `assets/`, built into the program.

use std::io::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use ring::digest::{SHA256, digest};

/// The content security policy. The page may load files from, and connect to, its own origin only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

/// Defines the built-in files: path, type, and content.
macro_rules! built_in {
    ($at:literal, $kind:expr, $name:literal) => {
        ($at, $kind, include_bytes!(concat!("assets/", $name)))
    };
    ($name:literal, $kind:expr) => {
        built_in!($name, $kind, $name)
    };
}

const FILES: &[(&str, &str, &[u8])] = &[
    built_in!("", HTML, "index.html"),
    built_in!("style.css", CSS),
    built_in!("icon.svg", SVG),
    built_in!("app.js", JAVASCRIPT),
    built_in!("api.js", JAVASCRIPT),
    built_in!("keys.js", JAVASCRIPT),
    built_in!("nats.js", JAVASCRIPT),
    built_in!("jetstream.js", JAVASCRIPT),
    built_in!("chart.js", JAVASCRIPT),
    built_in!("format.js", JAVASCRIPT),
    built_in!("gateways.js", JAVASCRIPT),
    built_in!("interest.js", JAVASCRIPT),
    built_in!("parts.js", JAVASCRIPT),
    built_in!("message.js", JAVASCRIPT),
    built_in!("overview.js", JAVASCRIPT),
    built_in!("connections.js", JAVASCRIPT),
    built_in!("subscriptions.js", JAVASCRIPT),
    built_in!("streams.js", JAVASCRIPT),
    built_in!("browser.js", JAVASCRIPT),
    built_in!("publish.js", JAVASCRIPT),
    built_in!("live.js", JAVASCRIPT),
    built_in!("accounts.js", JAVASCRIPT),
    built_in!("mqtt.js", JAVASCRIPT),
    built_in!("cluster.js", JAVASCRIPT),
    built_in!("vendor/preact-htm.js", JAVASCRIPT),
    built_in!("vendor/LICENSE.txt", TEXT),
];

/// A file with its compressed form.
struct Asset {
    at: &'static str,
    content_type: HeaderValue,
    tag: HeaderValue,
    plain: Bytes,
    compressed: Bytes,
}

/// All files. They are compressed at the first request.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let prepare =
        |&(at, content_type, content): &(&'static str, &'static str, &'static [u8])| Asset {
            at,
            content_type: HeaderValue::from_static(content_type),
            tag: tag(content),
            plain: Bytes::from_static(content),
            compressed: pack(content).map_or(Bytes::new(), Bytes::from),
        };
    FILES.iter().map(prepare).collect()
});

fn tag(content: &[u8]) -> HeaderValue {
    let digest = digest(&SHA256, content);
    let text = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..12]);
    HeaderValue::from_str(&format!("\"{text}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

fn pack(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(content)?;
    packer.finish()
}

/// Returns the file at a path below `/dashboard/`; `None` if there is none.
pub(super) fn answer(at: &str, request_headers: &HeaderMap) -> Option<Response<Full<Bytes>>> {
    let asset = ASSETS.iter().find(|asset| asset.at == at)?;
    let has = |header: HeaderName, what: &[u8]| {
        let value = request_headers
            .get(header)
            .map_or(&[][..], HeaderValue::as_bytes);
        value.windows(what.len()).any(|part| part == what)
    };
    let is_known = has(IF_NONE_MATCH, asset.tag.as_bytes());
    let is_compressed = has(ACCEPT_ENCODING, b"gzip") && !asset.compressed.is_empty();
    let body = match (is_known, is_compressed) {
        (true, _) => Bytes::new(),
        (false, true) => asset.compressed.clone(),
        (false, false) => asset.plain.clone(),
    };
    let mut response = Response::new(Full::new(body));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(ETAG, asset.tag.clone());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // Browsers revalidate files each time, because servers are updated.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if !is_known {
        headers.insert(CONTENT_TYPE, asset.content_type.clone());
        if is_compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The total size of all files, plain and compressed, stays below its limits.
    #[test]
    fn the_page_is_small() {
        let plain: usize = ASSETS.iter().map(|asset| asset.plain.len()).sum();
        let compressed: usize = ASSETS.iter().map(|asset| asset.compressed.len()).sum();
        assert!(plain < 300 * 1024, "{plain}");
        assert!(compressed < 100 * 1024, "{compressed}");
    }

    /// Every file that the page refers to is built in. No file is external.
    #[test]
    fn everything_that_is_loaded_is_built_in() {
        for (at, kind, content) in FILES {
            let text = std::str::from_utf8(content).expect("text");
            let folder = at.rsplit_once('/').map_or("", |(folder, _)| folder);
            for part in text.split(['"', '\'']).filter(|part| part.ends_with(".js")) {
                let name = part
                    .trim_start_matches("./")
                    .trim_start_matches("dashboard/");
                let place = [folder, name].join("/");
                let place = place.trim_start_matches('/');
                let is_there = FILES.iter().any(|(at, ..)| *at == place);
                assert!(is_there, "{at} refers to {part}");
            }
            if *kind != TEXT {
                let is_elsewhere = |part: &&str| !part.starts_with("www.w3.org/");
                let foreign = text.split("://").skip(1).find(is_elsewhere);
                assert_eq!(foreign.map(|text| text.get(..20)), None, "{at}");
            }
        }
    }

    /// The page names all scripts, so that browsers load them at once.
    #[test]
    fn every_script_is_named_by_the_page() {
        let page = FILES.iter().find(|(at, ..)| at.is_empty());
        let (_, _, page) = page.expect("the page");
        let page = std::str::from_utf8(page).expect("text");
        let scripts = FILES.iter().filter(|(_, kind, _)| *kind == JAVASCRIPT);
        for (at, ..) in scripts {
            assert!(page.contains(&format!("\"dashboard/{at}\"")), "{at}");
        }
    }

    #[test]
    fn unchanged_file_returns_304() {
        let mut headers = HeaderMap::new();
        let first = answer("style.css", &headers).expect("it is there");
        assert_eq!(first.status(), StatusCode::OK);
        assert!(!first.headers().contains_key(CONTENT_ENCODING));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip"));
        let compressed = answer("style.css", &headers).expect("it is there");
        assert_eq!(compressed.headers()[CONTENT_ENCODING], "gzip");
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        let known = answer("style.css", &headers).expect("it is there");
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert!(answer("../Cargo.toml", &headers).is_none());
    }
}
