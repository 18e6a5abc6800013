//! A process whose streams are carried in frames, over a stream whose end means nothing.
//!
//! A stream through a cluster's API server may be cut at any moment, loses what was said last when
//! a process ends, and on older servers cannot be half-closed; its end is no sign that all was
//! said. So the end of the input, the end of the output and the exit code are frames, and this
//! program stays until the other end has said that it read them. If the stream ends before that,
//! the process is killed: it never takes half an input for the whole, and does not work on beside
//! the next one that is started in its place.
//!
//! A frame is a letter, the length of what follows as four bytes, and what follows. The first one
//! says what is to be started: as arguments it would be part of an address, which proxies cut and
//! audit logs keep. [`run`] is the inner end, beside the process; the outer one reads and writes
//! the same frames.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};

use super::ending::kill_tree;

/// Letters of frames to the process. The first frame is a [`Started`] as JSON.
pub const START: u8 = b'c';
pub const INPUT: u8 = b'i';
pub const INPUT_END: u8 = b'e';
/// Says that the ending was read.
pub const SEEN: u8 = b's';

/// Letters of frames from the process.
pub const OUTPUT: u8 = b'o';
/// The last frame: an [`Ended`] as JSON.
pub const ENDING: u8 = b'x';

/// Bytes of a frame before what it carries.
pub const HEADER: usize = 5;

/// Most bytes that a frame carries.
pub const LARGEST: usize = 512 * 1024;

/// Bytes of one read.
const PIECE: usize = 32 * 1024;

/// Most bytes of stderr that are kept: the last.
const STDERR_KEPT: usize = 64 * 1024;

/// Time for the other end to say that it read the ending.
const GOODBYE: Duration = Duration::from_mins(1);

/// Folder that takes the place of a home folder which the user cannot write to.
const HOME: &str = "/workspace";

/// A process that is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub command: Vec<String>,
    /// Environment variables, each as `NAME=value`.
    pub environment: Vec<String>,
    /// Whether it goes on when the stream is cut. Any other process is killed then: it would take
    /// a part of its input for all of it, and work on beside the next attempt.
    #[serde(default)]
    pub outlives: bool,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub exit_code: i64,
    /// The last 64 KiB.
    pub stderr: String,
    /// How many bytes of output were carried; another count at the outer end means that the stream
    /// lost some.
    #[serde(default)]
    pub output_bytes: Option<u64>,
}

/// A process that is killed when its stream is cut.
#[derive(Clone)]
struct Running {
    /// Its number, as long as it cannot be another's.
    id: Arc<Mutex<Option<u32>>>,
    outlives: bool,
}

impl Running {
    /// Kills the process because its stream was cut, unless it has ended or goes on without.
    fn cut(&self) {
        let id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(id), false) = (*id, self.outlives) {
            kill_tree(id);
        }
    }

    /// Waits until the process has ended. It can be killed all the while.
    fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // Its number stays its own; that is given up below, where nobody uses it meanwhile.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(id), options), Err(Errno::INTR)) {}
        }
        let mut id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        *id = None;
        child.wait()
    }
}

/// Returns the header of a frame.
pub fn header(letter: u8, length: usize) -> [u8; HEADER] {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [letter, length[0], length[1], length[2], length[3]]
}

/// Parses the header of a frame; fails if it announces more than [`LARGEST`].
pub fn parse_header(header: [u8; HEADER]) -> io::Result<(u8, usize)> {
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if length > LARGEST {
        return Err(io::Error::other("it said something that is no frame"));
    }
    Ok((header[0], length))
}

/// Starts the process that the first frame asks for, and carries its streams over `stdin` and
/// `stdout` until the other end has seen its ending. `home` is the home folder as this process has
/// it.
pub fn run(home: Option<&OsString>, mut stdin: impl Read + Send + 'static, mut stdout: impl Write) -> io::Result<()> {
    let (letter, bytes) = read_frame(&mut stdin)?;
    if letter != START {
        return Err(io::Error::other("it does not begin with what is to be started"));
    }
    let started: Started = serde_json::from_slice(&bytes)?;
    let ended = match start(home, &started) {
        Ok(mut child) => {
            let running = Running {
                id: Arc::new(Mutex::new(Some(child.id()))),
                outlives: started.outlives,
            };
            // Says that the way to here is there, before the process says anything.
            let _ = write_frame(&mut stdout, OUTPUT, &[]);
            let seen = feed(child.stdin.take().zip(Some(running.clone())), stdin);
            let ended = carry(child, &running, &mut stdout)?;
            return say_goodbye(&ended, &seen, &mut stdout);
        }
        Err(error) => Ended {
            exit_code: if error.kind() == io::ErrorKind::NotFound {
                127
            } else {
                126
            },
            stderr: error.to_string(),
            output_bytes: Some(0),
        },
    };
    say_goodbye(&ended, &feed(None, stdin), &mut stdout)
}

fn start(home: Option<&OsString>, started: &Started) -> io::Result<Child> {
    let (program, arguments) = started
        .command
        .split_first()
        .ok_or_else(|| io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    // The image may know nothing of the user, and then it has no home that it could write to.
    let is_usable = |home: &OsString| rustix::fs::access(Path::new(home), rustix::fs::Access::WRITE_OK).is_ok();
    if !home.is_some_and(is_usable) {
        command.env("HOME", HOME);
    }
    command
        .envs(
            started
                .environment
                .iter()
                .filter_map(|variable| variable.split_once('=')),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Hands the input to the process in a thread, as long as it reads it. What it returns hears when
/// the other end has seen the ending, or is gone. `process` is its stdin, if it could be started.
fn feed(process: Option<(ChildStdin, Running)>, mut stdin: impl Read + Send + 'static) -> mpsc::Receiver<()> {
    let (said, seen) = mpsc::channel();
    thread::spawn(move || {
        let (mut input, running) = process.unzip();
        loop {
            match read_frame(&mut stdin) {
                Ok((INPUT, bytes)) => {
                    input = input.and_then(|mut input| input.write_all(&bytes).is_ok().then_some(input));
                }
                Ok((INPUT_END, _)) => input = None,
                Ok((SEEN, _)) => break,
                Ok(_) => {}
                Err(_) => {
                    // Before its stdin is closed, which would be the end of a whole input.
                    if let Some(running) = running {
                        running.cut();
                    }
                    break;
                }
            }
        }
        drop(input);
        let _ = said.send(());
    });
    seen
}

/// Carries the output to its end and waits for the process.
fn carry(mut child: Child, running: &Running, mut stdout: impl Write) -> io::Result<Ended> {
    let stderr = child.stderr.take();
    let said = thread::spawn(move || stderr.map(last_of).unwrap_or_default());
    let mut output = child.stdout.take();
    let mut piece = vec![0; PIECE];
    let mut is_heard = true;
    let mut output_bytes = 0;
    while let Some(output) = output.as_mut() {
        match output.read(&mut piece) {
            Ok(0) | Err(_) => break,
            // Where nobody hears it any more, the process still gets rid of it.
            Ok(length) if is_heard => {
                is_heard = write_frame(&mut stdout, OUTPUT, &piece[..length]).is_ok();
                output_bytes += length as u64;
                // A process that reads nothing would notice no cut by its input.
                if !is_heard {
                    running.cut();
                }
            }
            Ok(_) => {}
        }
    }
    let status = running.wait(&mut child)?;
    let signalled = || status.signal().map(|signal| 128 + signal);
    let exit_code = status.code().or_else(signalled).unwrap_or(-1);
    Ok(Ended {
        exit_code: exit_code.into(),
        stderr: said.join().unwrap_or_default(),
        output_bytes: Some(output_bytes),
    })
}

fn say_goodbye(ended: &Ended, seen: &mpsc::Receiver<()>, mut stdout: impl Write) -> io::Result<()> {
    write_frame(&mut stdout, ENDING, &serde_json::to_vec(ended)?)?;
    // Without it, the end of the stream could overtake what was written last.
    let _ = seen.recv_timeout(GOODBYE);
    Ok(())
}

/// Reads to the end and returns the last part.
fn last_of(mut stream: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), vec![0; PIECE]);
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        kept.extend_from_slice(&piece[..length]);
        let excess = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn write_frame(stream: &mut impl Write, letter: u8, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(&header(letter, bytes.len()))?;
    stream.write_all(bytes)?;
    stream.flush()
}

fn read_frame(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; HEADER];
    stream.read_exact(&mut head)?;
    let (letter, length) = parse_header(head)?;
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok((letter, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(environment: &[&str], command: &[&str]) -> Started {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Started {
            command: owned(command),
            environment: owned(environment),
            outlives: false,
        }
    }

    /// Runs `command` with these frames, and returns its output and how it ended.
    fn run_with(environment: &[&str], command: &[&str], frames: &[(u8, &[u8])]) -> (Vec<u8>, Ended) {
        let mut input = Vec::new();
        for (letter, bytes) in frames {
            write_frame(&mut input, *letter, bytes).unwrap();
        }
        run_on(&started(environment, command), &input)
    }

    /// Runs a process with these bytes of frames.
    fn run_on(started: &Started, bytes: &[u8]) -> (Vec<u8>, Ended) {
        let mut input = Vec::new();
        write_frame(&mut input, START, &serde_json::to_vec(started).unwrap()).unwrap();
        input.extend(bytes);
        let mut said = Vec::new();
        run(Some(&"/tmp".into()), io::Cursor::new(input), &mut said).unwrap();
        let (mut output, mut rest) = (Vec::new(), &said[..]);
        loop {
            match read_frame(&mut rest).unwrap() {
                (OUTPUT, bytes) => output.extend(bytes),
                (ENDING, bytes) => {
                    assert!(rest.is_empty(), "nothing follows the ending");
                    return (output, serde_json::from_slice(&bytes).unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn ended(exit_code: i64, stderr: &str, output_bytes: u64) -> Ended {
        Ended {
            exit_code,
            stderr: stderr.to_owned(),
            output_bytes: Some(output_bytes),
        }
    }

    #[test]
    fn the_end_of_input_and_output_and_the_exit_code_are_frames() {
        let script = "cat; echo $A >&2; exit 3";
        let frames: [(u8, &[u8]); 4] = [(INPUT, b"some "), (INPUT, b"input"), (INPUT_END, b""), (SEEN, b"")];
        let ran = run_with(&["A=b=c"], &["sh", "-c", script], &frames);
        assert_eq!(ran, (b"some input".to_vec(), ended(3, "b=c\n", 10)));
    }

    #[test]
    fn nothing_of_a_long_output_is_lost() {
        let frames: [(u8, &[u8]); 2] = [(INPUT_END, b""), (SEEN, b"")];
        let (output, ending) = run_with(&[], &["head", "-c", "3145728", "/dev/zero"], &frames);
        assert_eq!((output.len(), ending), (3_145_728, ended(0, "", 3_145_728)));
    }

    #[test]
    fn a_process_never_takes_a_part_of_its_input_for_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let done = folder.path().join("done");
        let script = format!("cd '{}'; cat >file; touch done", folder.path().display());
        let piece = vec![b'a'; 100_000];
        let mut input = Vec::new();
        write_frame(&mut input, INPUT, &piece).unwrap();
        write_frame(&mut input, INPUT, &piece).unwrap();
        // Between two frames, in a header and in the middle of a frame.
        for length in [0, 100_005, 100_007, 150_000] {
            let (_, ending) = run_on(&started(&[], &["sh", "-c", &script]), &input[..length]);
            assert_eq!(ending.exit_code, 137, "after {length} bytes");
            assert!(!done.exists(), "after {length} bytes");
        }
        write_frame(&mut input, INPUT_END, b"").unwrap();
        write_frame(&mut input, SEEN, b"").unwrap();
        let (_, ending) = run_on(&started(&[], &["sh", "-c", &script]), &input);
        assert_eq!((ending.exit_code, done.exists()), (0, true));
    }

    #[test]
    fn a_cut_stream_ends_everything_that_still_works_on_a_whole_input() {
        let (_, ending) = run_with(&[], &["sh", "-c", "sleep 600 | sleep 600"], &[(INPUT_END, b"")]);
        assert_eq!(ending.exit_code, 137);
    }

    #[test]
    fn a_process_that_reads_nothing_ends_when_nobody_hears_it() {
        struct Deaf;
        impl Write for Deaf {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut input = Vec::new();
        let asked = started(&[], &["sh", "-c", "echo begun; sleep 600"]);
        write_frame(&mut input, START, &serde_json::to_vec(&asked).unwrap()).unwrap();
        // More than the process's pipe takes, so that nobody gets to the end of this.
        for _ in 0..4 {
            write_frame(&mut input, INPUT, &vec![b'a'; 100_000]).unwrap();
        }
        let begun = std::time::Instant::now();
        run(Some(&"/tmp".into()), io::Cursor::new(input), Deaf).unwrap_err();
        assert!(begun.elapsed() < Duration::from_mins(5), "it was killed");
    }

    #[test]
    fn a_process_that_outlives_its_stream_only_loses_its_input() {
        let mut input = Vec::new();
        write_frame(&mut input, INPUT, b"half").unwrap();
        let asked = Started {
            outlives: true,
            ..started(&[], &["cat"])
        };
        assert_eq!(run_on(&asked, &input), (b"half".to_vec(), ended(0, "", 4)));
    }

    #[test]
    fn what_cannot_be_started_has_an_ending_as_well() {
        let (_, ending) = run_with(&[], &["/no/such/program"], &[(SEEN, b"")]);
        assert_eq!(ending.exit_code, 127);
        assert!(ending.stderr.contains("No such file"), "{}", ending.stderr);
        assert_eq!(run_with(&[], &[], &[]).1.exit_code, 126);
        assert_eq!(run_with(&[], &["sh", "-c", "kill -9 $$"], &[]).1.exit_code, 137);
    }

    #[test]
    fn nothing_is_started_before_it_is_said_what() {
        let mut said = Vec::new();
        let mut input = header(INPUT, 1).to_vec();
        input.push(b'x');
        run(None, io::Cursor::new(input), &mut said).unwrap_err();
        assert!(said.is_empty());
    }

    #[test]
    fn a_header_that_announces_too_much_is_no_frame() {
        assert_eq!(parse_header(header(OUTPUT, 7)).unwrap(), (OUTPUT, 7));
        assert!(parse_header(*b"HTTP/").is_err());
    }
}
