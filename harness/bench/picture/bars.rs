//! Bars: how many times as much the peer needs, what is used up of each target, and the values of
//! each unit.

use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::axis::Axis;
use super::spread::has_hill;
use super::{Area, FOOT, HEAD, NAMES, Picture, WIDTH, colour};
use crate::figure::Figure;
use crate::report::number;

const ROW: i32 = 26;
/// More than this many times a target looks the same.
const MOST: f64 = 3.0;
/// The ratio of two bars from which on the smaller one cannot be seen.
const FAR: f64 = 100.0;

/// A bar with a name before and a note behind it.
struct Bar {
    name: String,
    value: f64,
    colour: RGBColor,
    note: String,
    /// The value that the bar is held against.
    mark: Option<f64>,
}

struct Bars {
    title: String,
    unit: &'static str,
    rows: Vec<Bar>,
    axis: Axis,
    /// Where bars begin. On an axis of powers there is no zero: without a beginning that means
    /// something only their ends are drawn.
    begin: Option<f64>,
}

/// Returns how many times as much the peer needs.
pub(super) fn gains(figures: &[Figure]) -> Option<Box<dyn Picture>> {
    let bar = |figure: &Figure| {
        let (gain, peer) = (figure.gain?, figure.peer?);
        let (times, peer, own) = (number(gain), number(peer), number(figure.median));
        Some(Bar {
            name: figure.name.to_owned(),
            value: gain,
            colour: if gain < 1.0 { colour::MISSED } else { colour::PEER },
            note: format!("{times}x ({peer} to {own} {})", figure.unit),
            mark: figure.target_gain,
        })
    };
    let bars: Vec<Bar> = figures.iter().filter_map(bar).collect();
    let ends = bars.iter().flat_map(|bar| [1.0, bar.value, bar.mark.unwrap_or(1.0)]);
    let bars = Bars {
        title: "How many times as much mini-swe-agent needs (the upright line is the target)".to_owned(),
        unit: "x",
        axis: Axis::logarithmic(ends, WIDTH),
        rows: bars,
        begin: Some(1.0),
    };
    bars.boxed()
}

/// Returns how much of each target is used up.
pub(super) fn targets(figures: &[Figure]) -> Option<Box<dyn Picture>> {
    let mut bars = Vec::new();
    for figure in figures {
        for (what, used) in figure.used() {
            bars.push(Bar {
                name: format!("{}, {what}", figure.name),
                value: used * 100.0,
                colour: if used <= 1.0 { colour::MET } else { colour::MISSED },
                note: format!("{:.0} %", used * 100.0),
                mark: Some(100.0),
            });
        }
    }
    let most = bars.iter().map(|bar| bar.value).fold(125.0, f64::max);
    let bars = Bars {
        title: "How much of each target is used up".to_owned(),
        unit: " %",
        rows: bars,
        axis: Axis::linear(most.min(MOST * 100.0), WIDTH),
        begin: Some(0.0),
    };
    bars.boxed()
}

/// Returns for each unit the medians of its figures, but for those whose distribution is shown.
pub(super) fn units(figures: &[Figure]) -> Vec<Box<dyn Picture>> {
    let figures: Vec<&Figure> = figures.iter().filter(|figure| !has_hill(figure)).collect();
    let mut units: Vec<&'static str> = figures.iter().map(|figure| figure.unit).collect();
    units.sort_unstable();
    units.dedup();
    units.into_iter().filter_map(|unit| of_unit(&figures, unit)).collect()
}

fn of_unit(figures: &[&Figure], unit: &'static str) -> Option<Box<dyn Picture>> {
    let mut bars = Vec::new();
    for figure in figures.iter().filter(|figure| figure.unit == unit) {
        let bar = |name: &str, value, colour, mark| Bar {
            name: name.to_owned(),
            value,
            colour,
            note: format!("{} {unit}", number(value)),
            mark,
        };
        bars.push(bar(figure.name, figure.median, figure.whose.colour(), figure.target));
        bars.extend(figure.floor.map(|floor| bar("its floor", floor, colour::FLOOR, None)));
        bars.extend(figure.peer.map(|peer| bar("mini-swe-agent", peer, colour::PEER, None)));
    }
    let values = bars.iter().flat_map(|bar| [Some(bar.value), bar.mark]).flatten();
    let above = values.clone().filter(|value| *value > 0.0);
    let (least, most) = (above.clone().fold(f64::INFINITY, f64::min), above.fold(0.0, f64::max));
    let (axis, begin) = if most > least * FAR {
        (Axis::logarithmic(values, WIDTH), None)
    } else {
        (Axis::linear(most, WIDTH), Some(0.0))
    };
    let title = match unit {
        "" => "Counts".to_owned(),
        unit => format!("Medians in {unit}"),
    };
    let unit = "";
    let bars = Bars {
        title,
        unit,
        rows: bars,
        axis,
        begin,
    };
    bars.boxed()
}

impl Bars {
    /// Returns the picture; none without bars.
    fn boxed(self) -> Option<Box<dyn Picture>> {
        (!self.rows.is_empty()).then(|| Box::new(self) as Box<dyn Picture>)
    }

    fn rows_height(&self) -> i32 {
        ROW * i32::try_from(self.rows.len()).unwrap_or_default()
    }

    fn bar(&self, area: &Area, bar: &Bar, top: i32) -> anyhow::Result<()> {
        let (middle, bottom) = (top + ROW / 2, top + ROW);
        let end = self.axis.place(bar.value);
        let begin = self.begin.map_or(end - 6, |begin| self.axis.place(begin));
        // One place wide at least: a nothing is seen, too.
        let (left, right) = (begin.min(end), begin.max(end).max(begin.min(end) + 1));
        let corners = [(left, top + 5), (right, bottom - 5)];
        area.draw(&Rectangle::new(corners, bar.colour.mix(0.75).filled()))?;
        if let Some(mark) = bar.mark {
            let place = self.axis.place(mark);
            let line = vec![(place, top + 2), (place, bottom - 2)];
            area.draw(&PathElement::new(line, colour::INK.stroke_width(2)))?;
        }
        let name = colour::text(13, colour::INK, HPos::Right);
        area.draw(&Text::new(bar.name.clone(), (NAMES - 12, middle), name))?;
        let note = colour::text(13, bar.colour, HPos::Left);
        area.draw(&Text::new(bar.note.clone(), (self.axis.right() + 12, middle), note))?;
        Ok(())
    }
}

impl Picture for Bars {
    fn height(&self) -> i32 {
        HEAD + self.rows_height() + FOOT
    }

    fn draw(&self, area: &Area) -> anyhow::Result<()> {
        self.axis.draw(area, &self.title, self.unit, self.rows_height())?;
        let mut top = HEAD;
        for bar in &self.rows {
            self.bar(area, bar, top)?;
            top += ROW;
        }
        Ok(())
    }
}
