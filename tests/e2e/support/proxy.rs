//! A small HTTP proxy in front of the S3 server: records every request, refuses some, drops conditions,
//! holds answers back. One connection a request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// From 1, in order of arrival.
    pub number: usize,
    /// From 1, in order of arrival among requests that write.
    pub write: Option<usize>,
    pub method: String,
    /// Bucket and key, without the query.
    pub path: String,
    /// Whether it carries `If-None-Match: *`.
    pub create: bool,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Pass,
    /// Passed on without its condition, as by a server that ignores it.
    Unconditional,
    /// Not passed on.
    Refuse(Status),
    /// Passed on; its answer is lost, the client gets this.
    PassThenRefuse(Status),
    /// Not passed on and not answered until the proxy is released.
    Hold,
    /// Passed on, and not answered until the proxy is released.
    PassThenHold,
    /// Neither passed on nor answered, ever: the process that sent it is about to be killed.
    Swallow,
}

/// The answers of a busy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// 503 `SlowDown`.
    SlowDown,
    /// 409 `ConditionalRequestConflict`.
    Conflict,
}

type Rule = Box<dyn FnMut(&Request) -> Answer + Send>;

struct State {
    rule: Rule,
    seen: Vec<Request>,
    writes: usize,
    held: usize,
    released: bool,
    stopped: bool,
}

struct Shared {
    target: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

/// A running proxy; it ends when dropped.
pub struct Proxy {
    pub endpoint: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<std::thread::JoinHandle<()>>,
}

impl Proxy {
    /// Stand in front of `server`, and ask `rule` about each request.
    pub fn start(server: &str, rule: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        let target = server.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target,
            state: Mutex::new(State {
                rule: Box::new(rule),
                seen: Vec::new(),
                writes: 0,
                held: 0,
                released: false,
                stopped: false,
            }),
            changed: Condvar::new(),
        });
        let accepted = shared.clone();
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepted.state.lock().unwrap().stopped {
                    return;
                }
                let shared = accepted.clone();
                // A client that went away is not the proxy's concern.
                std::thread::spawn(move || stream.and_then(|stream| serve(&shared, stream)));
            }
        });
        Self {
            endpoint: format!("http://{address}"),
            address,
            shared,
            accepting: Some(accepting),
        }
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Request> {
        self.shared.state.lock().unwrap().seen.clone()
    }

    /// Requests so far that write.
    pub fn writes(&self) -> Vec<Request> {
        let mut seen = self.seen();
        seen.retain(|r| r.write.is_some());
        seen
    }

    /// Wait until a request is held or swallowed; false when none is within `limit`.
    pub fn wait_held(&self, limit: Duration) -> bool {
        let state = self.shared.state.lock().unwrap();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(state, limit, |state| state.held == 0)
            .unwrap();
        state.held > 0
    }

    /// Let held requests go on.
    pub fn release(&self) {
        self.shared.state.lock().unwrap().released = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Ok(mut state) = self.shared.state.lock() {
            state.stopped = true;
            state.released = true;
        }
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

fn serve(shared: &Shared, mut client: TcpStream) -> std::io::Result<()> {
    let (head, body) = read_request(&mut client)?;
    let (request, answer) = arrive(shared, &head);
    let forwarded = |head: &[String]| forward(shared.target, head, &body);
    match answer {
        Answer::Pass => client.write_all(&forwarded(&head)?),
        Answer::Unconditional => {
            let is_condition = |line: &str| line.to_ascii_lowercase().starts_with("if-none-match:");
            let head: Vec<String> = head.into_iter().filter(|l| !is_condition(l)).collect();
            client.write_all(&forwarded(&head)?)
        }
        Answer::Refuse(status) => client.write_all(&refusal(status, &request)),
        Answer::PassThenRefuse(status) => {
            forwarded(&head)?;
            client.write_all(&refusal(status, &request))
        }
        Answer::Hold => {
            hold(shared);
            client.write_all(&forwarded(&head)?)
        }
        Answer::PassThenHold => {
            let answer = forwarded(&head)?;
            hold(shared);
            client.write_all(&answer)
        }
        Answer::Swallow => {
            hold(shared);
            Ok(())
        }
    }
}

fn arrive(shared: &Shared, head: &[String]) -> (Request, Answer) {
    let mut words = head[0].split(' ');
    let method = words.next().unwrap_or_default().to_string();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_string();
    let create = head
        .iter()
        .any(|line| line.to_ascii_lowercase().replace(' ', "") == "if-none-match:*");
    let mut state = shared.state.lock().unwrap();
    let writes = matches!(method.as_str(), "PUT" | "POST" | "DELETE");
    state.writes += usize::from(writes);
    let request = Request {
        number: state.seen.len() + 1,
        write: writes.then_some(state.writes),
        method,
        path,
        create,
    };
    state.seen.push(request.clone());
    let answer = (state.rule)(&request);
    (request, answer)
}

fn hold(shared: &Shared) {
    let mut state = shared.state.lock().unwrap();
    state.held += 1;
    shared.changed.notify_all();
    drop(
        shared
            .changed
            .wait_while(state, |state| !state.released)
            .unwrap(),
    );
}

/// The lines of the head, and the body.
fn read_request(client: &mut TcpStream) -> std::io::Result<(Vec<String>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut part = [0; 64 << 10];
    let mut end = None;
    loop {
        end = end.or_else(|| bytes.windows(4).position(|w| w == b"\r\n\r\n"));
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let lines: Vec<String> = head.split("\r\n").map(str::to_string).collect();
            let length = lines
                .iter()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.trim().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Ok((lines, bytes[end + 4..].to_vec()));
            }
        }
        match client.read(&mut part)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
}

/// Ask the server, on a connection of its own, for the whole answer.
fn forward(target: SocketAddr, head: &[String], body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(target)?;
    let other = |line: &&String| !line.to_ascii_lowercase().starts_with("connection:");
    let lines: Vec<&str> = head.iter().filter(other).map(String::as_str).collect();
    let head = format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"));
    server.write_all(head.as_bytes())?;
    server.write_all(body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(answer)
}

fn refusal(status: Status, request: &Request) -> Vec<u8> {
    let (line, code) = match status {
        Status::SlowDown => ("503 Slow Down", "SlowDown"),
        Status::Conflict => ("409 Conflict", "ConditionalRequestConflict"),
    };
    let body = match request.method.as_str() {
        "HEAD" => String::new(),
        _ => format!("<Error><Code>{code}</Code><Message>Please try again.</Message></Error>"),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
