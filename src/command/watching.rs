//! What lets others watch a worker: its metrics over HTTP, its progress on the terminal.

use std::sync::Arc;

use super::session::Session;
use crate::cli::ConsumeArgs;
use crate::error::Result;
use crate::metrics::{Address, Labels, Server};
use crate::worker::StatusBoard;

/// Lasts as long as the worker.
pub(super) struct Watching {
    pub(super) board: Arc<StatusBoard>,
    _server: Option<Server>,
}

impl Watching {
    /// Comes before everything else, so that it can be seen what that waits for.
    pub(super) async fn start(args: &ConsumeArgs, session: &Session) -> Result<Self> {
        let board = Arc::new(StatusBoard::default());
        let server = match &args.metrics {
            None => None,
            Some(text) => Some(serve(text, args, session, &board).await?),
        };
        Ok(Self {
            board,
            _server: server,
        })
    }
}

async fn serve(
    address: &str,
    args: &ConsumeArgs,
    session: &Session,
    board: &Arc<StatusBoard>,
) -> Result<Server> {
    let address = Address::parse(address)?;
    let labels = Labels {
        vhost: session.vhost()?.to_string(),
        queue: args.queue.clone(),
    };
    let board = Arc::clone(board);
    let server = Server::start(&address, labels, move || board.read()).await?;
    session.warn(|| format!("mq: metrics at http://{}/metrics", server.address()));
    Ok(server)
}
