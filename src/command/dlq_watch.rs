//! `mq dlq watch`: look after look, whatever becomes of the broker meanwhile.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where looks meet the clock"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::dlq_queues::{dead_letter_queues_again, named_queues, names, now};
use super::session::Session;
use super::signals;
use crate::broker::BrokerFacts;
use crate::cli::WatchArgs;
use crate::deadletter::{Place, Seen, Watch};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::management::{Management, ObservedQueue};
use crate::output::{
    self, Format, ListedQueue, LiveScreen, TerminalKind, WatchFrame, watch_frame, watch_json,
};
use crate::topology::{QueueName, VhostName};

/// What the person at the terminal wants.
enum Wish {
    End,
    DrawAgain,
}

pub(super) async fn run(
    args: &WatchArgs,
    terminal: TerminalKind,
    session: &Session,
) -> anyhow::Result<Exit> {
    let queues = names(&args.queues)?;
    let mut wishes = signals::listen()?;
    let management = session.management()?;
    let facts = management.facts().await?;
    let mut source = Source {
        args,
        session,
        management,
        facts,
        queues,
        watch: Watch::default(),
        start: Instant::now(),
    };
    // What cannot be read at the start is a mistake; later it is an outage.
    let looked = tokio::select! {
        looked = source.look(true) => looked,
        _ = wishes.recv() => return Ok(Exit::Done),
    };
    looked?;
    let draws = session.format == Format::Table && terminal.draws && output::data_is_on_terminal();
    if draws {
        on_screen(&mut source, terminal, wishes).await?;
    } else {
        as_lines(&mut source, wishes).await?;
    }
    Ok(Exit::Done)
}

/// Where samples come from, and what they amount to.
struct Source<'s> {
    args: &'s WatchArgs,
    session: &'s Session,
    management: Management,
    facts: BrokerFacts,
    queues: Vec<QueueName>,
    watch: Watch,
    start: Instant,
}

impl Source<'_> {
    /// One look at everything. At the `first` one queues that were named must exist,
    /// and what cannot be read is told; later it is left as it is.
    async fn look(&mut self, first: bool) -> Result<()> {
        let (session, management) = (self.session, &self.management);
        let listed = if self.queues.is_empty() {
            let all = self.args.all_vhosts;
            let (listed, skipped) =
                dead_letter_queues_again(session, management, &self.facts, all).await?;
            for line in skipped.iter().filter(|_| first) {
                output::talk(line);
            }
            listed
        } else if first {
            named_queues(session, management, &self.facts, &self.queues).await?
        } else {
            Vec::new()
        };
        let mut seen: BTreeMap<Place, Seen> = listed.iter().map(of_listed).collect();
        for place in self.expected() {
            if !seen.contains_key(&place)
                && let Some(found) = self.look_for(&place).await?
            {
                seen.insert(place, found);
            }
        }
        self.watch.sample(self.start.elapsed(), seen);
        Ok(())
    }

    /// The queues that were there or were named: one that is not among the
    /// dead-letter queues any more is still shown.
    fn expected(&self) -> Vec<Place> {
        let named = self.session.vhost().map(ToString::to_string);
        let named = named.into_iter().flat_map(|vhost| {
            let queues = self.queues.iter();
            queues.map(move |queue| (vhost.clone(), queue.to_string()))
        });
        self.watch.present().cloned().chain(named).collect()
    }

    async fn look_for(&self, (vhost, queue): &Place) -> Result<Option<Seen>> {
        let vhost = VhostName::new(vhost.clone())?;
        let queue = QueueName::new(queue.clone())?;
        match self.management.queue(&vhost, &queue, &self.facts).await {
            Ok(observed) => Ok(Some(seen(&observed))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::AccessRefused => Ok(Some(Seen::default())),
            Err(error) => Err(error),
        }
    }
}

fn of_listed(queue: &ListedQueue) -> (Place, Seen) {
    let place = (queue.vhost.clone(), queue.queue.clone());
    (place, seen(&queue.observed))
}

fn seen(observed: &ObservedQueue) -> Seen {
    Seen {
        ready: observed.ready,
        unacknowledged: observed.unacknowledged,
        taken: observed.taken,
    }
}

async fn as_lines(source: &mut Source<'_>, mut signals: mpsc::UnboundedReceiver<u8>) -> Result<()> {
    let mut silent_since = None;
    let mut told_gone: Vec<Place> = Vec::new();
    let mut looks = 1;
    let mut next = source.start + source.args.interval;
    loop {
        if silent_since.is_none() {
            lines(&source.watch, &mut told_gone)?;
        }
        if source.args.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        tokio::select! {
            () = sleep_until(next) => {}
            _ = signals.recv() => return Ok(()),
        }
        next = after(next, source.args.interval);
        let looked = tokio::select! {
            looked = source.look(false) => looked,
            _ = signals.recv() => return Ok(()),
        };
        looks += 1;
        match (looked, silent_since) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(since)) => {
                silent_since = None;
                output::talk(&format!(
                    "mq: the management API answers again, for the first time since {}",
                    output::when(Some(since))
                ));
            }
            (Err(error), None) => {
                silent_since = Some(now());
                tell_silence(&error);
            }
        }
    }
}

fn tell_silence(error: &Error) {
    output::talk(&format!(
        "mq: no answer since {}, trying again: {}",
        output::when(Some(now())),
        output::printable(error.message())
    ));
}

/// A line for each queue; that one is gone is said once.
fn lines(watch: &Watch, told_gone: &mut Vec<Place>) -> Result<()> {
    let time = now();
    for row in watch.rows() {
        let place = (row.vhost.clone(), row.queue.clone());
        let was_told = told_gone.contains(&place);
        if row.is_gone && was_told {
            continue;
        }
        told_gone.retain(|told| *told != place);
        if row.is_gone {
            told_gone.push(place);
        }
        output::data(&output::json_line(&watch_json(&row, time)))?;
    }
    Ok(())
}

async fn on_screen(
    source: &mut Source<'_>,
    terminal: TerminalKind,
    mut signals: mpsc::UnboundedReceiver<u8>,
) -> Result<()> {
    let (send, mut wishes) = mpsc::unbounded_channel();
    let resized = send.clone();
    let mut resizes = signal(SignalKind::window_change())
        .map_err(|error| Error::new(ErrorKind::InputOutput, format!("cannot listen: {error}")))?;
    let screen = LiveScreen::open(move |key| {
        if matches!(key, b'q' | b'Q') {
            let _ = send.send(Wish::End);
            return false;
        }
        true
    })?;
    tokio::spawn(async move {
        while resizes.recv().await.is_some() && resized.send(Wish::DrawAgain).is_ok() {}
    });
    let mut silent_since = None;
    let vhost = if source.args.all_vhosts {
        None
    } else {
        Some(source.session.vhost()?.to_string())
    };
    let mut read = now();
    let mut looks = 1;
    let mut next = source.start + source.args.interval;
    loop {
        let draw = |source: &Source<'_>, silent_since: Option<u64>| {
            let frame = WatchFrame {
                read,
                silent_since,
                vhost: vhost.clone(),
                unicode: terminal.unicode,
                size: screen.size(),
            };
            screen.draw(&watch_frame(&source.watch.rows(), &frame))
        };
        draw(source, silent_since)?;
        if source.args.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        tokio::select! {
            () = sleep_until(next) => {}
            _ = signals.recv() => return Ok(()),
            wish = wishes.recv() => match wish {
                Some(Wish::DrawAgain) => continue,
                Some(Wish::End) | None => return Ok(()),
            }
        }
        next = after(next, source.args.interval);
        let looked = tokio::select! {
            looked = source.look(false) => looked,
            _ = signals.recv() => return Ok(()),
            () = ended(&mut wishes) => return Ok(()),
        };
        looks += 1;
        match looked {
            Ok(()) => {
                silent_since = None;
                read = now();
            }
            Err(_) => silent_since = silent_since.or_else(|| Some(now())),
        }
    }
}

/// Waits for the wish to end. What should only be drawn again is drawn soon anyway.
async fn ended(wishes: &mut mpsc::UnboundedReceiver<Wish>) {
    while let Some(Wish::DrawAgain) = wishes.recv().await {}
}

/// The next look: on time, but not two at once when one took long.
fn after(last: Instant, interval: Duration) -> Instant {
    (last + interval).max(Instant::now())
}
