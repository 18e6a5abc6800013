//! Figures to be looked at, as pictures in SVG. Each picture takes from the report what fits it, so
//! that a new figure is in them without a word here: its distribution where it has many values of
//! time, its targets, its peer, and a bar among those of its unit.

mod axis; // from values to places
mod bars; // values, shares and gains as bars
mod colour; // readable on light and on dark
mod page; // report.html
mod spread; // how values are distributed

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea, SVGBackend};

use crate::figure::{Figure, Whose};

pub use page::page;

/// The area that a picture is drawn in.
type Area<'text> = DrawingArea<SVGBackend<'text>, Shift>;

const WIDTH: i32 = 900;

/// Left of it stand the names of the rows, right of it the drawing and what is written behind it.
const NAMES: i32 = 320;
const NOTES: i32 = 215;

/// Above the rows the title, below them the axis.
const HEAD: i32 = 40;
const FOOT: i32 = 36;

/// A picture: how high it is, and how it is drawn.
trait Picture {
    fn height(&self) -> i32;
    fn draw(&self, area: &Area) -> anyhow::Result<()>;
}

/// Returns the one picture that says most: how long a turn takes, and how often the program fits
/// into its peer.
pub fn summary(figures: &[Figure]) -> anyhow::Result<String> {
    // The parts of the floor say nothing beside its whole.
    let is_turn = |figure: &&Figure| figure.name.contains("turn") && figure.unit == "ms";
    let turns: Vec<Figure> = figures.iter().filter(is_turn).cloned().collect();
    let pictures = [
        spread::spread("How long a turn takes, with a model that answers at once", &turns),
        bars::gains(figures),
    ];
    svg(&pictures.into_iter().flatten().collect::<Vec<_>>())
}

/// Returns all pictures that these figures give, each as a document of its own.
fn all(figures: &[Figure]) -> anyhow::Result<Vec<String>> {
    let mut pictures = Vec::new();
    pictures.extend(spread::spread("How long things take", figures));
    pictures.extend(bars::gains(figures));
    pictures.extend(bars::targets(figures));
    pictures.extend(bars::units(figures));
    pictures.into_iter().map(|picture| svg(&[picture])).collect()
}

/// Draws pictures below one another.
fn svg(pictures: &[Box<dyn Picture>]) -> anyhow::Result<String> {
    let height: i32 = pictures.iter().map(|picture| picture.height()).sum();
    let mut text = String::new();
    {
        let size = (WIDTH.unsigned_abs(), height.max(1).unsigned_abs());
        let mut rest = SVGBackend::with_string(&mut text, size).into_drawing_area();
        rest.fill(&colour::PAPER)?;
        for picture in pictures {
            let (area, below) = rest.split_vertically(picture.height());
            picture.draw(&area)?;
            rest = below;
        }
        rest.present()?;
    }
    Ok(colour::with_dark(&text))
}

impl Whose {
    fn colour(self) -> plotters::style::RGBColor {
        match self {
            Self::Program => colour::PROGRAM,
            Self::Floor => colour::FLOOR,
            Self::Peer => colour::PEER,
        }
    }
}
