//! What lets others watch a worker: its metrics over HTTP, its progress on the terminal.

use std::sync::Arc;

use super::session::Session;
use crate::cli::ConsumeArgs;
use crate::error::Result;
use crate::metrics::{Address, Labels, Server};
use crate::output::{self, Progress, Rate, worker_line};
use crate::worker::StatusBoard;

/// Lasts as long as the worker.
pub(super) struct Watching {
    pub(super) board: Arc<StatusBoard>,
    progress: Option<Progress>,
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
            progress: shows_progress(args, session).then(|| progress(args, &board)),
            board,
            _server: server,
        })
    }

    /// Nothing more is to be shown; whoever asks is still answered.
    pub(super) fn hide_progress(&mut self) {
        self.progress = None;
    }
}

/// Messages on the same terminal would be torn apart by a line below them.
fn shows_progress(args: &ConsumeArgs, session: &Session) -> bool {
    let prints_there = args.print && output::data_is_on_terminal();
    session.shows_progress && !prints_there && Progress::is_possible()
}

fn progress(args: &ConsumeArgs, board: &Arc<StatusBoard>) -> Progress {
    let (queue, board) = (args.queue.clone(), Arc::clone(board));
    let mut rate = Rate::default();
    Progress::start(move |now, columns| {
        let status = board.read();
        let handled = status.counts.settled() + status.counts.retried;
        let rate = rate.sample(now, handled);
        worker_line(&queue, &status, rate, columns)
    })
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
