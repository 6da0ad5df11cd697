//! A TCP proxy that can be told to cut every connection, or to let none through.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test support outside #[test] functions"
)]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Between mq and the broker.
pub(crate) struct Proxy {
    pub(crate) address: String,
    open: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    /// How many confirms are still kept back.
    kept_back: Arc<AtomicUsize>,
    /// Whether the next confirm ends its connection instead of passing.
    cuts_at_confirm: Arc<AtomicBool>,
}

/// A `basic.ack` from its size on: 13 bytes, class 60, method 80.
const CONFIRM: [u8; 8] = [0, 0, 0, 13, 0, 60, 0, 80];

impl Proxy {
    pub(crate) fn to(target: String) -> Self {
        Self::at("127.0.0.1:0", target)
    }

    /// The same at an address that is known before.
    pub(crate) fn at(address: &str, target: String) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = Arc::new(AtomicBool::new(true));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let kept_back: Arc<AtomicUsize> = Arc::default();
        let (is_open, kept) = (open.clone(), streams.clone());
        let keep_back = kept_back.clone();
        let cuts_at_confirm: Arc<AtomicBool> = Arc::default();
        let cut = cuts_at_confirm.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if !is_open.load(Ordering::SeqCst) {
                    let _ = client.shutdown(Shutdown::Both);
                    continue;
                }
                // The broker may be down.
                let Ok(server) = TcpStream::connect(&target) else {
                    let _ = client.shutdown(Shutdown::Both);
                    continue;
                };
                let mut kept = kept.lock().unwrap();
                // Acks of a client look like confirms.
                let never = Arc::default();
                for (from, to, cut) in [(&client, &server, &never), (&server, &client, &cut)] {
                    kept.push(from.try_clone().unwrap());
                    copy(
                        from.try_clone().unwrap(),
                        to.try_clone().unwrap(),
                        keep_back.clone(),
                        cut.clone(),
                    );
                }
            }
        });
        Self {
            address,
            open,
            streams,
            kept_back,
            cuts_at_confirm,
        }
    }

    /// Cuts the connection that the broker next sends a confirm on, before it
    /// arrives: what was published is there, its publisher cannot know.
    pub(crate) fn cut_at_confirm(&self) {
        self.cuts_at_confirm.store(true, Ordering::SeqCst);
    }

    /// Takes that back; whether it had not happened yet.
    pub(crate) fn spare_confirms(&self) -> bool {
        self.cuts_at_confirm.swap(false, Ordering::SeqCst)
    }

    /// Whether a confirm is still to come that will be cut.
    pub(crate) fn waits_for_confirm(&self) -> bool {
        self.cuts_at_confirm.load(Ordering::SeqCst)
    }

    /// Keeps back the next confirms of the broker, so many.
    pub(crate) fn keep_back_confirms(&self, count: usize) {
        self.kept_back.store(count, Ordering::SeqCst);
    }

    /// Cuts everything that is open, without a goodbye.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether new connections are let through.
    pub(crate) fn let_through(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, keep_back: Arc<AtomicUsize>, cut: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 16384];
        while let Ok(read) = from.read(&mut chunk) {
            let sent = &chunk[..read];
            let is_confirm = sent.windows(CONFIRM.len()).any(|part| part == CONFIRM);
            if is_confirm && cut.swap(false, Ordering::SeqCst) {
                break;
            }
            let one_less = |left: usize| left.checked_sub(1);
            if is_confirm
                && keep_back
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                    .is_ok()
            {
                continue;
            }
            if read == 0 || to.write_all(sent).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

/// A management API that answers every question with "it is all there", but
/// belongs to another cluster. Gives its URL.
pub(crate) fn management_of_another_cluster() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let body = if String::from_utf8_lossy(&request[..read]).contains("/api/overview") {
                r#"{"rabbitmq_version":"4.0.5","cluster_name":"somebody-elses"}"#
            } else {
                r#"[{"name":"q","durable":true,"arguments":{}}]"#
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}
