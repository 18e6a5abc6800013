//! The Git LFS server of a fake forge: the batch API and the basic transfer, with contents beside
//! each repository. It wants the credentials that git has, for every request.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::body::Bytes;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::Method;
use axum::http::Response;
use axum::http::StatusCode;
use axum::http::header;
use serde_json::Value;
use serde_json::json;
use sha2::Digest as _;
use sha2::Sha256;

use crate::fake::fault::Quirk;
use crate::fake::forge::Forge;
use crate::fake::forge::Host;

const LONGEST: usize = 64 * 1024 * 1024;
const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";

/// Returns the pointer to a content.
pub fn pointer(content: &[u8]) -> String {
    format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{:x}\nsize {}\n",
        Sha256::digest(content),
        content.len()
    )
}

/// Keeps a content for a repository, and returns the pointer to it.
pub fn keep(repository: &Path, content: &[u8]) -> String {
    let place = place(repository, &format!("{:x}", Sha256::digest(content)));
    std::fs::create_dir_all(place.parent().expect("it is in a folder")).expect("a folder can be made");
    std::fs::write(place, content).expect("a content can be written");
    pointer(content)
}

/// Says whether a repository has the content.
pub fn has(repository: &Path, content: &[u8]) -> bool {
    place(repository, &format!("{:x}", Sha256::digest(content))).is_file()
}

fn place(repository: &Path, oid: &str) -> PathBuf {
    repository.join("lfs").join(oid)
}

/// Answers a request for `rest` below `info/lfs/` of a repository, whose client was let in.
pub async fn serve<S: Host>(forge: Arc<Forge<S>>, repository: &str, rest: &str, request: Request) -> Response<Body> {
    let folder = forge.folder.join(format!("{repository}.git"));
    let address = format!("{}/{repository}.git/info/lfs", forge.origin);
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, LONGEST).await.expect("no test sends more");
    let named = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    match (&parts.method, rest.split('/').collect::<Vec<_>>().as_slice()) {
        (&Method::POST, ["objects", "batch"]) => {
            if named(header::ACCEPT) != Some(MEDIA_TYPE) || named(header::CONTENT_TYPE) != Some(MEDIA_TYPE) {
                return complaint(StatusCode::NOT_ACCEPTABLE, "this is no request of the protocol");
            }
            let asked: Value = serde_json::from_slice(&body).expect("a batch is JSON");
            assert_eq!(asked["transfers"], json!(["basic"]));
            let lacks = forge.traffic.has(Quirk::LacksContents);
            let objects = asked["objects"].as_array().expect("a batch has objects").iter();
            let objects: Vec<Value> = objects
                .map(|object| {
                    let oid = object["oid"].as_str().expect("an object has an id");
                    let is_there = place(&folder, oid).is_file() && !lacks;
                    let href = json!({ "href": format!("{address}/objects/{oid}"), "header": { "X-Part": "1" } });
                    let mut answer = json!({ "oid": oid, "size": object["size"], "authenticated": true });
                    match (asked["operation"].as_str(), is_there) {
                        (Some("download"), true) => answer["actions"] = json!({ "download": href }),
                        (Some("download"), false) => {
                            answer["error"] = json!({ "code": 404, "message": "Object does not exist" });
                        }
                        (Some("upload"), false) => {
                            let verify = json!({ "href": format!("{address}/verify") });
                            answer["actions"] = json!({ "upload": href, "verify": verify });
                        }
                        (Some("upload"), true) => {}
                        (other, _) => panic!("there is no operation {other:?}"),
                    }
                    answer
                })
                .collect();
            told(StatusCode::OK, &json!({ "transfer": "basic", "objects": objects }))
        }
        (&Method::GET, ["objects", oid]) if forge.traffic.has(Quirk::RedirectsContents) => {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::FOUND;
            let address = format!("{address}/store/{oid}");
            let address = address.parse().expect("an address is a proper header");
            answer.headers_mut().insert(header::LOCATION, address);
            answer
        }
        (&Method::GET, ["store", oid]) => match std::fs::read(place(&folder, oid)) {
            Ok(content) => Response::new(Body::from(content)),
            Err(_) => complaint(StatusCode::NOT_FOUND, "Object does not exist"),
        },
        (&Method::GET, ["objects", oid]) if parts.headers.contains_key("x-part") => {
            let Ok(mut content) = std::fs::read(place(&folder, oid)) else {
                return complaint(StatusCode::NOT_FOUND, "Object does not exist");
            };
            if forge.traffic.has(Quirk::SendsOtherContents) {
                content.reverse();
            }
            Response::new(Body::from(content))
        }
        (&Method::PUT, ["objects", oid]) => {
            if named(header::CONTENT_LENGTH).is_none() {
                return complaint(StatusCode::LENGTH_REQUIRED, "how long is it?");
            }
            upload(&folder, oid, &body)
        }
        (&Method::POST, ["verify"]) => {
            let asked: Value = serde_json::from_slice(&body).expect("what is verified is JSON");
            let there = std::fs::metadata(place(&folder, asked["oid"].as_str().unwrap_or_default()));
            match there {
                Ok(there) if Some(there.len()) == asked["size"].as_u64() => told(StatusCode::OK, &json!({})),
                _ => complaint(StatusCode::NOT_FOUND, "it did not arrive"),
            }
        }
        _ => complaint(StatusCode::NOT_FOUND, "there is nothing of this name"),
    }
}

fn upload(folder: &Path, oid: &str, body: &Bytes) -> Response<Body> {
    if format!("{:x}", Sha256::digest(body)) != oid {
        return complaint(StatusCode::UNPROCESSABLE_ENTITY, "it has another digest");
    }
    keep(folder, body);
    told(StatusCode::OK, &json!({}))
}

fn complaint(status: StatusCode, message: &str) -> Response<Body> {
    told(status, &json!({ "message": message }))
}

fn told(status: StatusCode, body: &Value) -> Response<Body> {
    let mut answer = Response::new(Body::from(body.to_string()));
    *answer.status_mut() = status;
    let media_type = header::HeaderValue::from_static(MEDIA_TYPE);
    answer.headers_mut().insert(header::CONTENT_TYPE, media_type);
    answer
}
