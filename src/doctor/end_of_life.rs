//! Until when the community gets fixes for a series of RabbitMQ.

use crate::doctor::check::SUPPORTED;
use crate::doctor::{BrokerSeen, NotTold, Report, Status, SubjectKind};

/// Major and minor version.
type Series = (u32, u32);

/// Year, month, day.
type Day = (i64, u32, u32);

/// A series with the last day of its community support.
///
/// Since 2024 it ends when the next series is released
/// (rabbitmq.com/release-information, COMMUNITY_SUPPORT.md of rabbitmq-server);
/// where a day was named, that one: 3.10 by the release notes of 3.10.24, 3.11 and
/// 3.12 by the site of 2024, 4.2 and 4.3 as the site's table was quoted in 2026;
/// the others by endoflife.date/rabbitmq. Commercial support lasts longer.
const SERIES: [(Series, Day); 11] = [
    ((3, 7), (2020, 9, 30)),
    ((3, 8), (2022, 7, 31)),
    ((3, 9), (2023, 1, 31)),
    ((3, 10), (2023, 7, 31)),
    ((3, 11), (2023, 12, 31)),
    ((3, 12), (2024, 6, 30)),
    ((3, 13), (2024, 9, 18)),
    ((4, 0), (2025, 4, 15)),
    ((4, 1), (2026, 1, 30)),
    ((4, 2), (2026, 7, 31)),
    ((4, 3), (2026, 11, 30)),
];

const SECONDS_A_DAY: i64 = 86_400;

pub(super) fn check(broker: &BrokerSeen, report: &mut Report) {
    let series @ (major, minor) = broker.facts.series();
    let end = SERIES.iter().find(|(known, _)| *known == series);
    let Some((_, (year, month, day))) = end else {
        let why = if SERIES.iter().all(|(known, _)| *known > series) {
            BrokerSeen::finding(
                Status::Fail,
                SubjectKind::Broker,
                broker.facts.to_string(),
                format!("series {major}.{minor} is older than any that was supported since 2020"),
                "plan the way to a supported series (docs: Upgrading RabbitMQ)",
            )
        } else {
            broker.not_told(&NotTold {
                why: format!(
                    "until when series {major}.{minor} is supported is not known to this mq"
                ),
                fix: "look it up: https://www.rabbitmq.com/release-information".to_owned(),
            })
        };
        report.find(SUPPORTED, why);
        return;
    };
    report.judged(SUPPORTED, 1);
    let over = (days_since_1970(*year, *month, *day) + 1) * SECONDS_A_DAY;
    let is_over = i64::try_from(broker.now).is_ok_and(|now| now >= over);
    if is_over {
        report.find(
            SUPPORTED,
            BrokerSeen::finding(
                Status::Warn,
                SubjectKind::Broker,
                broker.facts.to_string(),
                format!("community support of series {major}.{minor} ended on {year}-{month:02}-{day:02}: no more fixes, not for security either"),
                "upgrade to a supported series (https://www.rabbitmq.com/release-information), or buy support",
            ),
        );
    }
}

/// Days between 1970-01-01 and a day of the Gregorian calendar.
fn days_since_1970(year: i64, month: u32, day: u32) -> i64 {
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 {
        (year, i64::from(month) - 3)
    } else {
        (year - 1, i64::from(month) + 9)
    };
    let of_months = (153 * month + 2) / 5;
    let of_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    of_years + of_months + i64::from(day) - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::bench::broker;

    #[test]
    fn days_are_those_of_the_calendar() {
        for ((year, month, day), days) in [
            ((1970, 1, 1), 0),
            ((1970, 3, 1), 59),
            ((2000, 2, 29), 11_016),
            ((2024, 12, 31), 20_088),
            ((2026, 11, 30), 20_787),
        ] {
            assert_eq!(days_since_1970(year, month, day), days);
        }
    }

    #[test]
    fn a_series_is_supported_to_the_end_of_its_last_day() {
        let last_second = 20_788 * 86_400 - 1;
        for (version, now, status) in [
            ("4.3.6", last_second, Status::Pass),
            ("4.3.6", last_second + 1, Status::Warn),
            ("4.2.1", last_second, Status::Warn),
            ("4.0.5", 0, Status::Pass),
            ("3.10.8", last_second, Status::Warn),
            ("3.6.16", last_second, Status::Fail),
            ("4.4.0", last_second, Status::Unknown),
            ("5.0.0", last_second, Status::Unknown),
        ] {
            let mut report = Report::new(&[]);
            let mut broker = broker(version);
            broker.now = now;
            check(&broker, &mut report);
            let check = report.checks.iter().find(|one| one.rule == SUPPORTED);
            assert_eq!(
                check.map(super::super::Check::status),
                Some(status),
                "{version} {now}"
            );
        }
    }
}
