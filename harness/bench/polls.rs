//! How often a forge is asked when there is nothing to do, by the number of repositories.

use crate::economy::count;
use crate::fake::model::{Answer, Model};
use crate::figure::Figure;
use crate::process::used;
use crate::scale::Scale;
use crate::site::Site;

const SIZES: [(usize, &str); 3] = [
    (1, "an idle run on 1 repository, forge requests"),
    (10, "an idle run on 10 repositories, forge requests"),
    (100, "an idle run on 100 repositories, forge requests"),
];

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (size, name) in SIZES.into_iter().take(scale.of(SIZES.len(), 2)) {
        let model = Model::answering(|_| Answer::done("Nobody asks.")).await;
        let repositories: Vec<String> = (0..size).map(|number| format!("acme/widgets-{number}")).collect();
        let site = Site::of(&model, &repositories).await?;
        let command = site.command(&["run"])?;
        // The first run learns what later ones only confirm.
        used(&command)?;
        let before = site.github.requests().len();
        used(&command)?;
        let requests = site.github.requests().len() - before;
        anyhow::ensure!(requests > 0, "the program did not look for work");
        figures.push(Figure::of(name, "", &[count(requests)])?);
    }
    Ok(figures)
}
