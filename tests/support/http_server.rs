//! An HTTP server that answers as a test says and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The only header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(header, _)| header.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} came twice");
        value
    }
}

/// Lives as long as the test process; each connection has a thread of its own.
pub(crate) struct HttpServer {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
    connections: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

impl HttpServer {
    /// `answer` writes the answer to each request.
    pub(crate) fn new(answer: impl Fn(&Request, &mut Client) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap().to_string(),
            requests: Arc::default(),
            connections: Arc::default(),
            lost: Arc::default(),
        };
        let answer = Arc::new(answer);
        let (requests, connections) = (server.requests.clone(), server.connections.clone());
        let lost = server.lost.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (requests, answer) = (requests.clone(), answer.clone());
                let mut client = Client {
                    stream: stream.unwrap(),
                    lost: lost.clone(),
                };
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(client.stream.try_clone().unwrap());
                    while let Some(request) = read(&mut reader) {
                        requests.lock().unwrap().push(request.clone());
                        answer(&request, &mut client);
                    }
                });
            }
        });
        server
    }

    /// The same answer to every request.
    pub(crate) fn saying(answer: &str) -> Self {
        let answer = answer.to_owned();
        Self::new(move |_, client| client.send(&answer))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// How many clients went away while an answer was written or withheld.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

/// Whoever asked.
pub(crate) struct Client {
    stream: TcpStream,
    lost: Arc<AtomicUsize>,
}

impl Client {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The client may have gone away.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Says no more until the client goes away.
    pub(crate) fn withhold(&mut self) {
        // A request that follows would be read here; none does.
        let _ = self.stream.read(&mut [0]);
        self.lost.fetch_add(1, Ordering::SeqCst);
    }

    /// Sends `x` for ever, until the client goes away.
    pub(crate) fn flood(&mut self) {
        let bytes = vec![b'x'; 65536];
        while self.stream.write_all(&bytes).is_ok() {}
        self.lost.fetch_add(1, Ordering::SeqCst);
    }

    /// Goes away without another word.
    pub(crate) fn hang_up(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// An answer with its length.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = || {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(1..) => Some(line.trim_end().to_owned()),
            _ => None,
        }
    };
    let first = line()?;
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        match line.split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut request = Request {
        line: first,
        headers,
        body: Vec::new(),
    };
    let length = request.header("content-length")?.parse().unwrap();
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
