//! One long-lived child: a message in, an answer out, and its end.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where child processes are started"
)]

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::handler::Job;
use crate::handler::environment::STREAM_PROTOCOL;
use crate::handler::listener::{Listener, PIPE_GRACE};
use crate::handler::metadata::{OF_A_MESSAGE, OPTIONAL};
use crate::handler::process_group::ProcessGroup;
use crate::handler::program::Program;

use crate::handler::stream::protocol::{
    Answer, LONGEST_ANSWER, VERSION, decode, encode, quote_and_expect,
};

/// Read at once, in bytes.
const READ_BUFFER: usize = 32 << 10;

/// A buffer that one large message left behind is given back above this, in bytes.
const KEPT_BUFFER: usize = 1 << 20;

/// A child that runs, or ran when it was last looked at.
#[derive(Debug)]
pub(super) struct StreamChild {
    child: Child,
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    listener: Listener,
    request: Vec<u8>,
    answer: Vec<u8>,
    answers: u64,
}

/// What came of a message that was given to a child.
pub(super) enum Reply {
    /// Its answer.
    Answer(Answer),
    /// It said something that is not understood.
    NotUnderstood {
        /// What it said and what was expected.
        why: String,
    },
    /// Not one byte of the message reached it: it was gone already.
    NotTaken,
    /// It ended, or closed its output, without an answer.
    Ended,
}

/// The end of a child.
pub(super) struct End {
    /// Unless its status cannot be read.
    pub(super) status: Option<ExitStatus>,
    /// Whether it ended before it was made to.
    pub(super) by_itself: bool,
    /// The end of its standard error.
    pub(super) stderr: String,
    /// What it said on standard output after its last line end.
    pub(super) unfinished: Vec<u8>,
}

impl StreamChild {
    /// # Errors
    /// When the program cannot be started.
    pub(super) fn start(program: &Program, job: &Job) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        for name in OPTIONAL.into_iter().chain(OF_A_MESSAGE) {
            command.env_remove(name);
        }
        let (words, write_end) = io::pipe()?;
        let mut child = command
            .args(&program.arguments)
            .env(STREAM_PROTOCOL, VERSION.to_string())
            .env("MQ_QUEUE", job.queue.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(write_end))
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = ProcessGroup::of(&child);
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("its standard output is not ours"))?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: BufReader::with_capacity(READ_BUFFER, stdout),
            listener: Listener::start(pipe::Receiver::from_owned_fd(words.into())?, job),
            child,
            group,
            request: Vec::new(),
            answer: Vec::new(),
            answers: 0,
        })
    }

    /// Whether it never answered anything.
    pub(super) const fn is_fresh(&self) -> bool {
        self.answers == 0
    }

    /// Whether it still runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of its standard error since the last message was given to it.
    pub(super) fn said(&self) -> String {
        self.listener.said()
    }

    /// Gives it a message and waits for the answer. When this is dropped before
    /// its end, or ends otherwise than with an answer, the child is of no use.
    pub(super) async fn ask(&mut self, id: u64, job: &Job) -> Reply {
        self.listener.next(job);
        for buffer in [&mut self.request, &mut self.answer] {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER);
        }
        if let Err(error) = encode(&mut self.request, id, job) {
            let why = format!("the message cannot be written as JSON: {error}");
            return Reply::NotUnderstood { why };
        }
        if let Some(early) = self.spoke_out_of_turn() {
            let why = format!(
                "it said something before it was given the message: {}",
                quote_and_expect(&early, id)
            );
            // Whose answer it was is settled; this message had no part in it. But
            // a child that begins by talking would be replaced for ever.
            if self.is_fresh() {
                return Reply::NotUnderstood { why };
            }
            tracing::warn!(
                why,
                "a handler process spoke out of turn; another takes its place"
            );
            return Reply::NotTaken;
        }
        match self.exchange().await {
            Exchanged::Line(_) if self.answer.len() > LONGEST_ANSWER => {
                let quoted = quote_and_expect(&self.answer, id);
                let why = format!("its answer is longer than 16 MiB; {quoted}");
                Reply::NotUnderstood { why }
            }
            Exchanged::Line(TakenWhole(false)) => {
                let quoted = quote_and_expect(&self.answer, id);
                let why = format!("it answered before it had read the message; {quoted}");
                Reply::NotUnderstood { why }
            }
            Exchanged::Line(TakenWhole(true)) => match decode(&self.answer, id) {
                Ok(answer) => {
                    self.answers += 1;
                    Reply::Answer(answer)
                }
                Err(why) => Reply::NotUnderstood { why },
            },
            Exchanged::NotTaken => Reply::NotTaken,
            Exchanged::Ended => Reply::Ended,
        }
    }

    /// What it has said, but for blank lines, since its last answer. It could be
    /// taken for the answer to what it has not read.
    fn spoke_out_of_turn(&mut self) -> Option<Vec<u8>> {
        while let Some(Ok(said)) = self.stdout.fill_buf().now_or_never() {
            let blank = said.iter().all(u8::is_ascii_whitespace);
            let length = said.len();
            if length == 0 {
                return None;
            }
            if !blank {
                return Some(said.to_vec());
            }
            self.stdout.consume(length);
        }
        None
    }

    /// Writes and reads at the same time: a child that talks before it listens
    /// must not block both.
    async fn exchange(&mut self) -> Exchanged {
        let Some(stdin) = &mut self.stdin else {
            return Exchanged::NotTaken;
        };
        let writing = write(stdin, &self.request);
        let reading = read_line(&mut self.stdout, &mut self.answer);
        tokio::pin!(writing, reading);
        let mut written = None;
        loop {
            tokio::select! {
                biased;
                end = &mut writing, if written.is_none() => match end {
                    Written::Nothing => return Exchanged::NotTaken,
                    end => written = Some(end),
                },
                line = &mut reading => {
                    return line.exchanged(written.as_ref());
                }
                _ = self.child.wait() => {
                    // Its last words may still be on their way.
                    return match timeout(PIPE_GRACE, &mut reading).await {
                        Ok(line) => line.exchanged(written.as_ref()),
                        Err(_) => Exchanged::Ended,
                    };
                }
            }
        }
    }

    /// Closes its input, gives it `patience` to end by itself, then ends it and
    /// every process of its group.
    pub(super) async fn finish(mut self, patience: Duration) -> End {
        drop(self.stdin.take());
        let by_itself = match timeout(patience, self.child.wait()).await {
            Ok(_) => {
                self.group.kill();
                true
            }
            Err(_) => {
                self.group.end(&mut self.child).await;
                false
            }
        };
        End {
            status: self.child.wait().await.ok(),
            by_itself,
            stderr: self.listener.finish().await,
            unfinished: self.answer,
        }
    }
}

/// Whether the child had the whole message when it spoke.
struct TakenWhole(bool);

enum Exchanged {
    Line(TakenWhole),
    NotTaken,
    Ended,
}

enum Written {
    Nothing,
    Part,
    Everything,
}

async fn write(to: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> Written {
    let mut written = Written::Nothing;
    while !bytes.is_empty() {
        match to.write(bytes).await {
            Ok(count @ 1..) => bytes = bytes.get(count..).unwrap_or_default(),
            Ok(0) | Err(_) => return written,
        }
        written = Written::Part;
    }
    Written::Everything
}

enum Line {
    Said,
    Ended,
}

impl Line {
    const fn exchanged(self, written: Option<&Written>) -> Exchanged {
        match self {
            Self::Said => Exchanged::Line(TakenWhole(matches!(written, Some(Written::Everything)))),
            Self::Ended => Exchanged::Ended,
        }
    }
}

/// Reads a line that is not blank, or the start of one that is too long.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Line {
    loop {
        let Ok(chunk) = from.fill_buf().await else {
            return Line::Ended;
        };
        if chunk.is_empty() {
            return Line::Ended;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let new = end.map_or(chunk, |end| chunk.get(..end).unwrap_or_default());
        line.extend_from_slice(new);
        let used = end.map_or(chunk.len(), |end| end + 1);
        from.consume(used);
        if line.len() > LONGEST_ANSWER {
            return Line::Said;
        }
        if end.is_some() {
            if !line.trim_ascii().is_empty() {
                return Line::Said;
            }
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], capacity: usize) -> Vec<Vec<u8>> {
        let mut from = BufReader::with_capacity(capacity, text);
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            match read_line(&mut from, &mut line).await {
                Line::Said => lines.push(line),
                Line::Ended => {
                    lines.push(line);
                    return lines;
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_are_found_however_they_arrive() {
        for capacity in [1, 2, 3, 64] {
            assert_eq!(
                lines(b"\n \r\n ab\r\n\n\tc\nrest", capacity).await,
                [&b" ab\r"[..], b"\tc", b"rest"]
            );
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_read_to_its_end() {
        let text = vec![b'x'; LONGEST_ANSWER + READ_BUFFER * 10];
        let mut line = Vec::new();
        let mut from = BufReader::with_capacity(READ_BUFFER, &text[..]);
        assert!(matches!(read_line(&mut from, &mut line).await, Line::Said));
        assert!(line.len() <= LONGEST_ANSWER + READ_BUFFER);
        let mut whole = vec![b'x'; LONGEST_ANSWER];
        whole.push(b'\n');
        assert_eq!(lines(&whole, READ_BUFFER).await[0].len(), LONGEST_ANSWER);
    }
}
