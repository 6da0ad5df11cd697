//! People are told when the broker blocks us, and when it goes on.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::session::Session;
use crate::amqp::{Alarm, Connection};
use crate::output::one_line;

/// The answer that ends the work may come at the same time as the end of the alarm.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Does the work, and meanwhile tells on standard error of each alarm that blocks the
/// connection; `limit` is how long one is waited for.
pub(super) async fn telling<T>(
    connection: &Connection,
    limit: Duration,
    session: &Session,
    work: impl Future<Output = T>,
) -> T {
    let mut watch = connection.alarm_watch();
    let mut work = pin!(work);
    let mut is_on = false;
    let done = loop {
        let alarm = tokio::select! {
            biased;
            alarm = watch.next() => alarm,
            done = &mut work => break done,
        };
        is_on = matches!(alarm, Alarm::On(_));
        session.warn(|| text(&alarm, limit));
    };
    if is_on && let Ok(alarm) = timeout(LAST_WORD, watch.next()).await {
        session.warn(|| text(&alarm, limit));
    }
    done
}

fn text(alarm: &Alarm, limit: Duration) -> String {
    match alarm {
        Alarm::On(reason) => format!(
            "mq: the broker blocks publishers: {} (an alarm, see `rabbitmqctl list_alarms`); waiting for its end, at most {}",
            one_line(reason, 200),
            humantime::format_duration(limit)
        ),
        Alarm::Off(lasted) => format!(
            "mq: the broker takes messages again, after {} s",
            lasted.as_secs()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_broker_says_cannot_drive_a_terminal() {
        let told = text(
            &Alarm::On("low on \u{1b}[2J".to_owned()),
            Duration::from_mins(5),
        );
        assert!(!told.contains('\u{1b}'), "{told}");
        assert!(told.ends_with("at most 5m"), "{told}");
        let told = text(&Alarm::Off(Duration::from_millis(12_900)), Duration::ZERO);
        assert!(told.ends_with("after 12 s"), "{told}");
    }
}
