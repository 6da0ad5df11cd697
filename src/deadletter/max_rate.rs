//! How many dead letters may come in within a second, a minute or an hour.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// So many in such a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxRate {
    count: u32,
    per: Per,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    Second,
    Minute,
    Hour,
}

impl Per {
    const fn parts(self) -> (&'static str, u32) {
        match self {
            Self::Second => ("s", 1),
            Self::Minute => ("m", 60),
            Self::Hour => ("h", 3600),
        }
    }
}

impl MaxRate {
    /// The same in messages a second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        f64::from(self.count) / f64::from(self.per.parts().1)
    }

    /// A rate in messages a second, told in the unit of this one.
    #[must_use]
    pub fn in_its_unit(self, per_second: f64) -> String {
        let (unit, seconds) = self.per.parts();
        let number = (per_second * f64::from(seconds) * 100.0).round() / 100.0;
        format!("{number}/{unit}")
    }

    /// Over how long it is looked at: a minute, for a rate an hour the last hour.
    #[must_use]
    pub const fn window(self) -> Duration {
        match self.per {
            Per::Second | Per::Minute => Duration::from_mins(1),
            Per::Hour => Duration::from_hours(1),
        }
    }
}

impl FromStr for MaxRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HOW: &str = "write it as a whole number and its unit: 5/s, 10/m or 100/h";
        let (count, unit) = text.split_once('/').ok_or(HOW)?;
        if !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(HOW);
        }
        let per = match unit {
            "s" => Per::Second,
            "m" => Per::Minute,
            "h" => Per::Hour,
            _ => return Err(HOW),
        };
        let count = count.parse().map_err(|_| HOW)?;
        Ok(Self { count, per })
    }
}

impl fmt::Display for MaxRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.parts().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_number_and_a_unit() {
        for (text, per_second, window) in [
            ("0/s", 0.0, 60),
            ("5/s", 5.0, 60),
            ("30/m", 0.5, 60),
            ("36/h", 0.01, 3600),
        ] {
            let rate: MaxRate = text.parse().expect(text);
            assert!((rate.per_second() - per_second).abs() < 1e-12, "{text}");
            assert_eq!(rate.window(), Duration::from_secs(window), "{text}");
            assert_eq!(rate.to_string(), text);
            assert_eq!(rate.in_its_unit(per_second), text);
        }
        for text in [
            "",
            "5",
            "/s",
            "5/",
            "-1/s",
            "+1/s",
            "1.5/s",
            "5/d",
            "99999999999/s",
        ] {
            assert!(text.parse::<MaxRate>().is_err(), "{text}");
        }
    }
}
