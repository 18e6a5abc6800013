//! Pictures that people dropped into an issue or a note.
//!
//! GitLab writes `/uploads/secret/name` into the text, below the project, and its API has the file.

use std::convert::Infallible;

use bytes::Bytes;
use url::Url;

use crate::forge::gitlab::http::endpoints::{NewUpload, Upload};
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::picture::Picture;

/// The address of an uploaded file, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The part that names the project: nothing, its path, or `-/project/` with its number.
    project: String,
    secret: String,
    file: String,
}

impl Api {
    /// Fetches a picture of a project; `None` if it is none that people dropped into a text there.
    pub(super) async fn picture(&self, at: ItemAddress<'_>, address: &str) -> Result<Option<Bytes>, Failure> {
        let project = self.project(at.repository).await?;
        let root = project.http_url_to_repo.strip_suffix(&format!("{}.git", at.repository));
        let web = root.and_then(|root| Url::parse(root).ok());
        let Some(place) = web.and_then(|web| place(&web, address)) else {
            return Ok(None);
        };
        let is_own = match place.project.strip_prefix("-/project/") {
            Some(number) => project.id.to_string() == number,
            None => place.project.is_empty() || place.project == at.repository,
        };
        // The token may read projects that the author of the text may not.
        if !is_own {
            return Ok(None);
        }
        let upload = Ok::<_, Infallible>(Upload {
            project: at.repository,
            secret: &place.secret,
            file: &place.file,
        });
        self.client.text(upload).await.map(|bytes| Some(bytes.into()))
    }
}

impl Api {
    /// Puts a picture into a project; returns its address for texts there.
    pub(super) async fn attach(&self, project: &str, picture: &Picture) -> Result<String, Failure> {
        let file = format!("picture.{}", picture.kind.ending());
        let upload = Ok::<_, Infallible>(NewUpload {
            project,
            file: &file,
            kind: picture.kind.as_str(),
            bytes: picture.bytes(),
        });
        let put: schema::Upload = self.client.ask(upload).await?;
        let is_address = put.url.starts_with("/uploads/") && !put.url.contains(char::is_whitespace);
        if is_address {
            Ok(put.url)
        } else {
            Err(Failure::unreadable("the address of a picture is not below /uploads/"))
        }
    }
}

/// Returns where a file lies that an address names, of the GitLab whose pages are below `web`.
fn place(web: &Url, address: &str) -> Option<Place> {
    let path = if let Some(path) = address.strip_prefix('/') {
        path.to_owned()
    } else {
        let url = Url::parse(address).ok()?;
        let is_own = url.origin() == web.origin() && url.username().is_empty();
        let below = url.path().strip_prefix(web.path())?;
        is_own.then(|| below.to_owned())?
    };
    let parts: Vec<&str> = path.split('/').collect();
    let [project @ .., "uploads", secret, file] = parts.as_slice() else {
        return None;
    };
    let is_secret = (16..=64).contains(&secret.len()) && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_name = |sign: char| sign.is_alphanumeric() || matches!(sign, '.' | '-' | '_' | '%' | '~');
    let is_file = !file.is_empty() && !file.starts_with('.') && file.chars().all(is_name);
    (is_secret && is_file).then(|| Place {
        project: project.join("/"),
        secret: (*secret).to_owned(),
        file: (*file).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_known_by_its_address() {
        let web = "https://lab.example/git/".parse().unwrap();
        let secret = "0123456789abcdef0123456789abcdef";
        let found = |address: &str| place(&web, address).map(|place| (place.project, place.file));
        let known = |project: &str| Some((project.to_owned(), "a.png".to_owned()));
        for (address, project) in [
            (format!("/uploads/{secret}/a.png"), ""),
            (format!("https://lab.example/git/g/p/uploads/{secret}/a.png"), "g/p"),
            (
                format!("https://lab.example/git/-/project/7/uploads/{secret}/a.png"),
                "-/project/7",
            ),
        ] {
            assert_eq!(found(&address), known(project), "{address}");
        }
        for address in [
            format!("https://evil.example/git/g/p/uploads/{secret}/a.png"),
            format!("https://lab.example/g/p/uploads/{secret}/a.png"),
            format!("http://lab.example/git/g/p/uploads/{secret}/a.png"),
            "/uploads/short/a.png".to_owned(),
            format!("/uploads/{secret}/.."),
            format!("/uploads/{secret}/a?b"),
            format!("/uploads/{secret}/"),
            "a.png".to_owned(),
        ] {
            assert_eq!(found(&address), None, "{address}");
        }
    }
}
