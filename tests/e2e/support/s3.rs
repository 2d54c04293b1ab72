//! The S3 server that `scripts/test` starts, and roots on it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use fixtures::fixture_s::{FixtureS, SpecS};
use graph::store::{Root, RootOptions};
use serde_json::Value;

use super::proxy::Proxy;
use super::roots::block_on;
use super::run::{command, finish, report_of};

/// Address of the server; the AWS variables name it too.
const SERVER: &str = "OMNIGRAPH_TEST_S3";
/// The bucket of all tests.
pub const BUCKET: &str = "omnigraph-tests";

/// The server; `None`, after one line on stderr, where there is none.
pub fn server() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let Ok(server) = std::env::var(SERVER) else {
                eprintln!("skipped: no S3 server ({SERVER} is not set; scripts/test starts one)");
                return None;
            };
            // Fixtures are written with the variables of this process: never to anybody's account.
            assert_eq!(std::env::var("AWS_ENDPOINT").as_ref(), Ok(&server));
            assert!(server.starts_with("http://127.0.0.1:"), "{server}");
            create_bucket(&server);
            Some(server)
        })
        .as_deref()
}

fn create_bucket(server: &str) {
    let address = server.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "PUT /{BUCKET} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Every object of a root, by key.
pub type Objects = BTreeMap<String, Vec<u8>>;

/// A root on the server.
pub struct Place {
    pub server: &'static str,
    pub uri: String,
}

impl Place {
    /// A prefix of its own that ends `name`, with nothing below it; `None` where there is no server.
    pub fn empty(name: &str) -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let server = server()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let uri = format!("s3://{BUCKET}/{}/{number}/{name}", std::process::id());
        Some(Self { server, uri })
    }

    /// Fixture S below a prefix of its own that ends `name`; `None` where there is no server.
    pub fn fixture_s(name: &str, spec: SpecS) -> Option<Self> {
        let place = Self::empty(name)?;
        block_on(FixtureS::create_at(&place.uri, spec)).unwrap();
        Some(place)
    }

    /// The URI in place of a path.
    pub fn path(&self) -> &Path {
        Path::new(&self.uri)
    }

    /// The key of a request below this root; `None` for any other.
    pub fn key<'a>(&self, request: &'a str) -> Option<&'a str> {
        let root = self.uri.strip_prefix("s3:/").unwrap();
        request.strip_prefix(root)?.strip_prefix('/')
    }

    /// Everything that is stored.
    pub fn objects(&self) -> Objects {
        block_on(async {
            let root = self.root().await;
            let mut out = Objects::new();
            for (key, size) in root.list_sorted("").await.unwrap() {
                let bytes = root.get(&key, size).await.unwrap().unwrap();
                out.insert(key, bytes.to_vec());
            }
            out
        })
    }

    /// Put back what [`Place::objects`] gave.
    pub fn restore(&self, objects: &Objects) {
        let now = self.objects();
        block_on(async {
            let root = self.root().await;
            for key in now.keys().filter(|key| !objects.contains_key(*key)) {
                root.delete(key).await.unwrap();
            }
            for (key, bytes) in objects {
                if now.get(key) != Some(bytes) {
                    root.overwrite(key, bytes.clone().into()).await.unwrap();
                }
            }
        });
    }

    async fn root(&self) -> Root {
        Root::open(&self.uri, RootOptions::default()).await.unwrap()
    }

    /// Run `work` and assert that it changed nothing.
    pub fn unchanged<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.objects();
        let out = work();
        assert_eq!(changes(&before, &self.objects()), [""; 0], "{}", self.uri);
        out
    }

    /// `upgrade` with `extra`, not started, through a proxy.
    pub fn command(&self, extra: &[&str], proxy: &Proxy) -> Command {
        through(&self.uri, extra, proxy)
    }

    /// The report of an upgrade through a proxy.
    pub fn upgrade(&self, extra: &[&str], proxy: &Proxy) -> Value {
        report_of(&finish(self.command(extra, proxy)))
    }
}

/// `upgrade` of any root with `extra`, not started, through a proxy.
pub fn through(uri: &str, extra: &[&str], proxy: &Proxy) -> Command {
    let mut command = command(["upgrade", uri, "--json", "--quiet"]);
    command.args(extra);
    command.env("AWS_ENDPOINT", &proxy.endpoint);
    command.env("AWS_ENDPOINT_URL", &proxy.endpoint);
    command
}

/// Store one object below `uri`.
pub fn put(uri: &str, key: &str, bytes: &'static [u8]) {
    block_on(async {
        let root = Root::open(uri, RootOptions::default()).await.unwrap();
        root.overwrite(key, bytes.into()).await.unwrap();
    });
}

/// What differs, one line an object: `+ new`, `- gone`, `* changed`.
pub fn changes(before: &Objects, after: &Objects) -> Vec<String> {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let new = after.keys().filter(|key| !before.contains_key(*key));
    let changed = before
        .iter()
        .filter(|(key, bytes)| after.get(*key).is_some_and(|now| now != *bytes));
    let mut lines: Vec<String> = gone.map(|key| format!("- {key}")).collect();
    lines.extend(changed.map(|(key, _)| format!("* {key}")));
    lines.extend(new.map(|key| format!("+ {key}")));
    lines
}
