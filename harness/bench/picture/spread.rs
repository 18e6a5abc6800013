//! How values are distributed: a hill for each figure over one logarithmic axis, with its median.

use plotters::element::{PathElement, Polygon, Text};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, whole};
use super::{Area, FOOT, HEAD, NAMES, Picture, WIDTH, colour};
use crate::economy::count;
use crate::figure::Figure;
use crate::report::number;

/// Fewer values are no distribution.
const ENOUGH: usize = 20;

/// Tells whether a figure has many values in milliseconds.
pub(super) fn has_hill(figure: &Figure) -> bool {
    figure.unit == "ms" && figure.samples >= ENOUGH
}

const ROW: i32 = 46;
/// The steps of a hill, from one end of the axis to the other.
const STEPS: i32 = 76;

struct Spread {
    title: &'static str,
    figures: Vec<Figure>,
    axis: Axis,
}

/// Returns the picture of those figures that have many values.
pub(super) fn spread(title: &'static str, figures: &[Figure]) -> Option<Box<dyn Picture>> {
    let figures: Vec<Figure> = figures.iter().filter(|figure| has_hill(figure)).cloned().collect();
    if figures.is_empty() {
        return None;
    }
    let axis = Axis::logarithmic(figures.iter().flat_map(|figure| figure.values.iter().copied()), WIDTH);
    Some(Box::new(Spread { title, figures, axis }))
}

impl Picture for Spread {
    fn height(&self) -> i32 {
        HEAD + self.rows() + FOOT
    }

    fn draw(&self, area: &Area) -> anyhow::Result<()> {
        self.axis.draw(area, self.title, " ms", self.rows())?;
        let mut bottom = HEAD;
        for figure in &self.figures {
            bottom += ROW;
            self.hill(area, figure, bottom)?;
        }
        Ok(())
    }
}

impl Spread {
    fn rows(&self) -> i32 {
        ROW * i32::try_from(self.figures.len()).unwrap_or_default()
    }

    fn hill(&self, area: &Area, figure: &Figure, bottom: i32) -> anyhow::Result<()> {
        let colour = figure.whose.colour();
        let (left, right) = (self.axis.left(), self.axis.right());
        let width = (right - left) / STEPS + 1;
        let mut heights = vec![0_usize; usize::try_from(STEPS + 1)?];
        for value in &figure.values {
            let step = usize::try_from((self.axis.place(*value) - left) / width)?;
            heights[step] += 1;
        }
        let most = count(heights.iter().copied().max().unwrap_or(1).max(1));
        let mut outline = vec![(left, bottom)];
        for (step, height) in (0..).zip(heights) {
            let top = bottom - whole(count(height) / most * f64::from(ROW - 10));
            let begin = left + step * width;
            outline.extend([(begin, top), ((begin + width).min(right), top)]);
        }
        outline.push((right, bottom));
        // Steps of the same height are one.
        outline.dedup();
        area.draw(&Polygon::new(outline, colour.mix(0.55).filled()))?;
        let median = self.axis.place(figure.median);
        let line = vec![(median, bottom - ROW + 6), (median, bottom)];
        area.draw(&PathElement::new(line, colour::INK.stroke_width(2)))?;
        let middle = bottom - ROW / 3;
        let name = colour::text(13, colour::INK, HPos::Right);
        area.draw(&Text::new(figure.name.to_owned(), (NAMES - 12, middle), name))?;
        let note = format!("{} ms, p95 {}", number(figure.median), number(figure.p95));
        let style = colour::text(13, colour, HPos::Left);
        Ok(area.draw(&Text::new(note, (right + 12, middle), style))?)
    }
}
