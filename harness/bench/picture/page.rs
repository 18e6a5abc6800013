//! `report.html`: the pictures and the table in one file that needs nothing else.

use minijinja::Environment;
use minijinja::value::Serde;
use serde_json::{Value, json};

use super::all;
use crate::figure::Figure;

/// Returns the page.
pub fn page(figures: &[Figure], machine: &Value, columns: &[&str], rows: &[Vec<String>]) -> anyhow::Result<String> {
    let mut templates = Environment::new();
    // The name's ending has everything but the pictures escaped.
    templates.add_template("page.html", include_str!("page.html"))?;
    let content = json!({ "pictures": all(figures)?, "machine": machine, "columns": columns, "rows": rows });
    Ok(templates
        .get_template("page.html")?
        .render(minijinja::Value::from(Serde(content)))?)
}
