//! What git says: its output, lines about the progress, and complaints.

use std::ops::ControlFlow;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Receives lines about the progress, many in a second.
pub(in crate::repository) type Told<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Bytes of the complaints that are kept.
pub(in crate::repository) const MAX_COMPLAINT: usize = 8 * 1024;

/// Beginnings of lines about the progress, of git here or, behind `remote: `, of git on the forge.
const PROGRESS: [&str; 7] = [
    "Enumerating objects",
    "Counting objects",
    "Compressing objects",
    "Receiving objects",
    "Resolving deltas",
    "Writing objects",
    "Total ",
];

/// Reads to the end, calls `told` with each line about the progress, and keeps the last bytes of
/// the rest: git prints the reason last.
pub(in crate::repository) async fn tail(output: Option<impl AsyncRead + Unpin>, told: Option<Told<'_>>) -> String {
    let Some(mut output) = output else { return String::new() };
    let (mut kept, mut line) = (Vec::new(), Vec::new());
    let mut chunk = vec![0; 4096];
    while let Ok(length) = output.read(&mut chunk).await {
        if length == 0 {
            break;
        }
        for byte in &chunk[..length] {
            if !matches!(byte, b'\n' | b'\r') && line.len() < MAX_COMPLAINT {
                line.push(*byte);
                continue;
            }
            take(&line, &mut kept, told);
            line.clear();
        }
    }
    take(&line, &mut kept, told);
    String::from_utf8_lossy(&kept).into_owned()
}

fn take(line: &[u8], kept: &mut Vec<u8>, told: Option<Told<'_>>) {
    let text = String::from_utf8_lossy(line);
    let shown = text.trim_start_matches("remote: ").trim_end();
    if PROGRESS.iter().any(|beginning| shown.starts_with(beginning)) {
        if let Some(told) = told {
            told(shown);
        }
        return;
    }
    if line.is_empty() {
        return;
    }
    kept.extend_from_slice(line);
    kept.push(b'\n');
    if kept.len() > MAX_COMPLAINT {
        // Cut at a line: half a secret would not be recognized.
        let surplus = kept.len() - MAX_COMPLAINT;
        let end = kept[surplus..].iter().position(|byte| *byte == b'\n');
        kept.drain(..surplus + end.map_or(0, |end| end + 1));
    }
}

/// Reads to the end, or until `take` breaks; returns whether it did.
pub(in crate::repository) async fn drain(
    output: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> std::io::Result<bool> {
    let Some(mut output) = output else { return Ok(false) };
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let length = output.read(&mut chunk).await?;
        if length == 0 {
            return Ok(false);
        }
        if take(&chunk[..length]).is_break() {
            return Ok(true);
        }
    }
}

/// Returns a text without secrets.
pub(in crate::repository) fn without(text: &str, hidden: &[SecretString]) -> String {
    hidden
        .iter()
        .map(ExposeSecret::expose_secret)
        .filter(|secret| !secret.is_empty())
        .fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn progress_is_told_and_complaints_are_kept() {
        let said = "remote: Counting objects: 100% (8/8), done.        \nReceiving objects:  12% (1/8)\r\
                    Receiving objects: 100% (8/8), 4 MiB | 2 MiB/s, done.\nremote: \nfatal: it broke\nerror: off";
        let told = Mutex::new(Vec::new());
        let tell = |line: &str| told.lock().unwrap().push(line.to_owned());
        let kept = tail(Some(said.as_bytes()), Some(&tell)).await;
        assert_eq!(kept, "remote: \nfatal: it broke\nerror: off\n");
        let told = told.into_inner().unwrap();
        assert_eq!(told.len(), 3);
        assert_eq!(told[1], "Receiving objects:  12% (1/8)");
        let long = format!("{}\nthe end\n", "x".repeat(3 * MAX_COMPLAINT));
        assert_eq!(tail(Some(long.as_bytes()), None).await, "the end\n");
    }
}
