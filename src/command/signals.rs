//! SIGTERM and SIGINT as messages: whoever drains decides what they mean.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Listens from now on; each signal arrives as its number.
pub(super) fn listen() -> std::io::Result<mpsc::UnboundedReceiver<u8>> {
    let (send, receive) = mpsc::unbounded_channel();
    for (kind, number) in [(SignalKind::interrupt(), 2), (SignalKind::terminate(), 15)] {
        let mut signals = signal(kind)?;
        let send = send.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if send.send(number).is_err() {
                    break;
                }
            }
        });
    }
    Ok(receive)
}
