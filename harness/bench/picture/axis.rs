//! From values to places on a picture, along an axis with marks.

use plotters::element::{PathElement, Text};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::{Area, FOOT, HEAD, NAMES, NOTES, colour};
use crate::report::number;

/// A horizontal axis between two places.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    least: f64,
    most: f64,
    is_logarithmic: bool,
    marks: Vec<f64>,
    left: i32,
    right: i32,
}

impl Axis {
    /// Returns an axis of powers of ten that holds these values; those that are not above zero have
    /// no place on it.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64> + Clone, width: i32) -> Self {
        let above = values.filter(|value| *value > 0.0);
        let least = above.clone().fold(f64::INFINITY, f64::min).min(1e9);
        let most = above.fold(f64::NEG_INFINITY, f64::max).max(least * 2.0);
        let mut decade = 10f64.powf(least.log10().floor());
        let mut marks = Vec::new();
        while decade <= most {
            marks.extend([1.0, 2.0, 5.0].map(|part| part * decade));
            decade *= 10.0;
        }
        let begin = marks.iter().rev().find(|mark| **mark <= least).copied();
        let end = marks.iter().find(|mark| **mark >= most).copied();
        Self::between(begin.unwrap_or(least), end.unwrap_or(most), true, marks, width)
    }

    /// Returns an axis from zero to at least `most`.
    pub(super) fn linear(most: f64, width: i32) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let rough = most / 4.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|part| part * decade)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let marks: Vec<f64> = (0..=5).map(|count| f64::from(count) * step).collect();
        let end = marks.iter().find(|mark| **mark >= most).copied().unwrap_or(most);
        Self::between(0.0, end, false, marks, width)
    }

    fn between(least: f64, most: f64, is_logarithmic: bool, mut marks: Vec<f64>, width: i32) -> Self {
        marks.retain(|mark| (least..=most).contains(mark));
        Self {
            least,
            most,
            is_logarithmic,
            marks,
            left: NAMES,
            right: width - NOTES,
        }
    }

    /// Returns the place of a value; one beyond the ends stands at the end.
    pub(super) fn place(&self, value: f64) -> i32 {
        let share = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.least).log10() / (self.most / self.least).log10()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        let width = f64::from(self.right - self.left);
        self.left + whole(share.clamp(0.0, 1.0) * width)
    }

    pub(super) fn left(&self) -> i32 {
        self.left
    }

    pub(super) fn right(&self) -> i32 {
        self.right
    }

    /// Draws title, lines and marks for rows that are so high together.
    pub(super) fn draw(&self, area: &Area, title: &str, unit: &str, rows: i32) -> anyhow::Result<()> {
        area.draw(&Text::new(
            title.to_owned(),
            (16, HEAD / 2),
            colour::text(16, colour::INK, HPos::Left),
        ))?;
        for mark in &self.marks {
            let place = self.place(*mark);
            let line = vec![(place, HEAD), (place, HEAD + rows)];
            area.draw(&PathElement::new(line, colour::LINE.stroke_width(1)))?;
            let label = format!("{}{unit}", number(*mark));
            let style = colour::text(11, colour::QUIET, HPos::Center);
            area.draw(&Text::new(label, (place, HEAD + rows + FOOT / 3), style))?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a place on a picture")]
pub(super) fn whole(place: f64) -> i32 {
    place.round() as i32
}
