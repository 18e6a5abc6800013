//! The colours, and those that take their place where people read light text on dark.

use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const INK: RGBColor = RGBColor(31, 35, 40);
pub(super) const QUIET: RGBColor = RGBColor(101, 109, 118);
pub(super) const LINE: RGBColor = RGBColor(216, 222, 228);
pub(super) const PROGRAM: RGBColor = RGBColor(9, 105, 218);
pub(super) const FLOOR: RGBColor = RGBColor(130, 80, 223);
pub(super) const PEER: RGBColor = RGBColor(188, 76, 0);
pub(super) const MET: RGBColor = RGBColor(26, 127, 55);
pub(super) const MISSED: RGBColor = RGBColor(207, 34, 46);

const DARK: [(RGBColor, &str); 9] = [
    (PAPER, "#0d1117"),
    (INK, "#e6edf3"),
    (QUIET, "#9198a1"),
    (LINE, "#30363d"),
    (PROGRAM, "#4493f8"),
    (FLOOR, "#ab7df8"),
    (PEER, "#f0883e"),
    (MET, "#3fb950"),
    (MISSED, "#f85149"),
];

/// Adds a style sheet to a picture that exchanges the colours where the reader prefers dark. The
/// paper is drawn, so that the picture can be read on any page.
pub(super) fn with_dark(svg: &str) -> String {
    let rules = DARK.map(|(RGBColor(red, green, blue), dark)| {
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    });
    let style = format!("<style>@media(prefers-color-scheme:dark){{{}}}</style>", rules.concat());
    match svg.split_once('>') {
        Some((head, body)) => format!("{head}>{style}{body}"),
        None => svg.to_owned(),
    }
}

/// Returns how text is written that stands `horizontal` of its place, in the middle of its line.
pub(super) fn text(size: i32, colour: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    let font = ("system-ui, sans-serif", size).into_font();
    font.color(&colour.to_rgba()).pos(Pos::new(horizontal, VPos::Center))
}
