//! Pictures for the statistics, as numbers from which the template draws SVG: no script, no library
//! and nothing that people wrote as markup.

use serde::Serialize;

use crate::web::reading::statistics::{Day, ModelCost};

/// Width and height of a picture, in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 160.0;
/// Widest bar.
const WIDEST: f64 = 40.0;
/// Most days, or models, in a picture.
const MOST: usize = 31;
/// Columns that have their names below them.
const MOST_LABELS: usize = 6;

/// Bars beside one another.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Bars {
    width: f64,
    height: f64,
    /// The value that the height of the picture stands for.
    top: f64,
    /// The labels below the bars: the name of each column, or of the first and the last where there
    /// are too many.
    labels: Vec<String>,
    /// Whether only the first and the last column have their names there.
    has_ends_only: bool,
    parts: Vec<Bar>,
}

/// A part of a bar.
#[derive(Debug, Clone, Serialize)]
struct Bar {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// The name of the part, such as `done`, by which the style colours it.
    kind: &'static str,
    /// The name of the column that it belongs to.
    name: String,
    value: f64,
}

/// Draws columns of parts that stand on one another, or, where they are not to be added, beside one
/// another.
fn draw(columns: &[(String, Vec<(&'static str, f64)>)], is_stacked: bool) -> Bars {
    let columns = &columns[columns.len().saturating_sub(MOST)..];
    let sum = |parts: &[(&str, f64)]| -> f64 { parts.iter().map(|(_, value)| value).sum() };
    let tallest = |parts: &[(&str, f64)]| -> f64 { parts.iter().map(|(_, value)| *value).fold(0.0, f64::max) };
    let height_of = |parts: &[(&str, f64)]| if is_stacked { sum(parts) } else { tallest(parts) };
    let top = columns.iter().map(|(_, parts)| height_of(parts)).fold(0.0, f64::max);
    let mut bars = Vec::new();
    let mut left = 0.0;
    let room = WIDTH / f64::from(u32::try_from(columns.len().max(1)).unwrap_or(1));
    for (name, parts) in columns {
        let whole = (room * 0.8).min(WIDEST);
        let width = if is_stacked || parts.is_empty() {
            whole
        } else {
            whole / f64::from(u32::try_from(parts.len()).unwrap_or(1))
        };
        let (mut x, mut base) = (left + (room - whole) / 2.0, HEIGHT);
        for (kind, value) in parts.iter().filter(|(_, value)| *value > 0.0) {
            let height = if top > 0.0 { value / top * HEIGHT } else { 0.0 };
            bars.push(Bar {
                x,
                y: base - height,
                width,
                height,
                kind,
                name: name.clone(),
                value: *value,
            });
            if is_stacked {
                base -= height;
            } else {
                x += width;
            }
        }
        left += room;
    }
    Bars {
        width: WIDTH,
        height: HEIGHT,
        top,
        labels: labels(columns),
        has_ends_only: columns.len() > MOST_LABELS,
        parts: bars,
    }
}

fn labels<T>(columns: &[(String, T)]) -> Vec<String> {
    match columns {
        [(first, _), .., (last, _)] if columns.len() > MOST_LABELS => vec![first.clone(), last.clone()],
        _ => columns.iter().map(|(name, _)| name.clone()).collect(),
    }
}

/// Draws how many runs ended on each day, and how.
pub(super) fn runs_by_day(days: &[Day]) -> Bars {
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let columns: Vec<_> = days
        .iter()
        .map(|day| {
            let parts = [("done", day.done), ("failed", day.failed), ("stopped", day.stopped)];
            let parts = parts.into_iter().map(|(kind, value)| (kind, count(value)));
            (day.date.clone(), parts.collect())
        })
        .collect();
    draw(&columns, true)
}

/// Draws how long the runs of each day took, in minutes: half of them at most, and 95 of a hundred.
pub(super) fn durations(days: &[Day]) -> Bars {
    let minutes = |seconds: Option<i64>| {
        let seconds = u32::try_from(seconds.unwrap_or_default()).unwrap_or(u32::MAX);
        f64::from(seconds) / 60.0
    };
    let columns: Vec<_> = days
        .iter()
        .map(|day| {
            let parts = vec![("p50", minutes(day.p50_seconds)), ("p95", minutes(day.p95_seconds))];
            (day.date.clone(), parts)
        })
        .collect();
    draw(&columns, false)
}

/// Draws what each model cost, in US dollars.
pub(super) fn costs(models: &[ModelCost]) -> Bars {
    let columns: Vec<_> = models
        .iter()
        .filter_map(|model| {
            let cost = model.cost_usd.filter(|cost| *cost > 0.0)?;
            Some((format!("{} ({})", model.model, model.role), vec![("cost", cost)]))
        })
        .collect();
    draw(&columns, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_within_the_picture_and_show_their_share() {
        let day = |name: usize, done, failed| Day {
            date: format!("2026-11-{name:02}"),
            done,
            failed,
            ..Day::default()
        };
        let picture = runs_by_day(&[day(1, 3, 1), day(2, 0, 2), day(3, 0, 0)]);
        assert!((picture.top - 4.0).abs() < f64::EPSILON && picture.parts.len() == 3);
        assert!(
            picture
                .parts
                .iter()
                .all(|bar| bar.y >= 0.0 && bar.y + bar.height <= HEIGHT + 1e-9)
        );
        assert!(
            picture
                .parts
                .iter()
                .all(|bar| bar.x >= 0.0 && bar.x + bar.width <= WIDTH)
        );
        assert!((picture.parts[0].height - HEIGHT * 0.75).abs() < 1e-9);
        assert_eq!(picture.labels, ["2026-11-01", "2026-11-02", "2026-11-03"]);
        let many: Vec<Day> = (1..=31).map(|number| day(number, 1, 0)).collect();
        assert_eq!(runs_by_day(&many).labels, ["2026-11-01", "2026-11-31"]);
        assert!(draw(&[], true).parts.is_empty());
    }
}
