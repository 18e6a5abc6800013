//! Lists of many pages.

use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::client::Client;
use crate::forge::github::http::response::{is_partial, next_page, page_after, partial, read};
use crate::forge::github::schema;
use crate::forge::http::failure::Failure;
use crate::forge::http::list_limit::ListLimit;

/// The items of a page, for which every list asks.
const FULL_PAGE: usize = 100;

impl Client {
    /// Fetches all pages of a list.
    pub(crate) async fn list<T: DeserializeOwned>(&self, scope: TokenScope<'_>, path: &str) -> Result<Vec<T>, Failure> {
        self.pages(scope, path, |page: Vec<T>| page).await
    }

    /// Fetches all pages of a search.
    pub(crate) async fn search<T: DeserializeOwned>(
        &self,
        scope: TokenScope<'_>,
        path: &str,
    ) -> Result<Vec<T>, Failure> {
        self.pages(scope, path, |page: schema::Found<T>| {
            if page.incomplete_results {
                tracing::warn!("GitHub's search ran out of time and left out items; the next search will find them");
            }
            page.items
        })
        .await
    }

    /// Fetches all pages of a list whose items are enclosed in another object.
    ///
    /// A page's tag does not change with its links. So the first answer of 100 items, confirmed by
    /// its tag, may be followed by a page that did not exist when it was stored; that page is asked
    /// for.
    pub(crate) async fn pages<P: DeserializeOwned, T>(
        &self,
        scope: TokenScope<'_>,
        path: &str,
        items: impl Fn(P) -> Vec<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        let mut limit = ListLimit::default();
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let answer = self.fetch(scope, &path).await?;
            limit.add(&answer)?;
            let page = items(read(&answer)?);
            let may_have_grown = answer.status == StatusCode::NOT_MODIFIED && page.len() >= FULL_PAGE;
            next = next_page(&answer).or_else(|| may_have_grown.then(|| page_after(&path)));
            all.extend(page);
            if is_partial(&answer) {
                if all.is_empty() {
                    return Err(partial());
                }
                tracing::warn!("{}", partial());
            }
        }
        Ok(all)
    }
}
